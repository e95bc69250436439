// SPDX-License-Identifier: Apache-2.0
// Integer layers in exact arithmetic: for sessions that check, and where oneDNN has no form.
#include "exec/engine/int8/layers.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/quantize.h"
#include "exec/engine/onednn/fusion.h"

namespace quench::exec {
namespace {

/// A parameter beside a tensor of this rank: one for all, or one for each element of an axis.
at::Tensor beside(const at::Tensor& parameter, std::int64_t axis, std::int64_t rank) {
  if (parameter.numel() == 1) return parameter.reshape({});
  return parameter.dim() > 1 ? parameter : along_axis(parameter, axis, rank);
}

/// Doubles hold every sum of byte products exactly, and libtorch multiplies them fast.
at::Tensor shifted(const at::Tensor& x, const at::Tensor& zero, std::int64_t axis) {
  const at::Tensor wide = x.to(at::kDouble);
  return zero.defined() ? wide - beside(zero, axis, x.dim()).to(at::kDouble) : wide;
}

at::Tensor residual_of(const Call& call) {
  return shifted(call.in(LayerNode::kResidual), call.in(LayerNode::kResidualZero), 0) *
         call.in(LayerNode::kResidualScale).to(at::kDouble).reshape({});
}

/// Quantised between layer and residual, and dequantised.
at::Tensor rounded_once(const Call& call, const at::Tensor& floats) {
  const at::Tensor scale = call.in(LayerNode::kMiddleScale).to(at::kDouble).reshape({});
  const at::Tensor zero = call.has(LayerNode::kMiddleZero)
                              ? call.in(LayerNode::kMiddleZero).reshape({})
                              : at::zeros({}, at::kByte);
  const at::Tensor bytes = to_integers(at::round(floats / scale), zero, zero.scalar_type());
  return shifted(bytes, zero, 0) * scale;
}

/// Whole numbers times positive factors as LiteRT's reference kernels have it: with 31 bits of the
/// factor, halves away from zero, to that factor's power of two, and then to whole numbers.
at::Tensor scaled_in_fixed_point(const at::Tensor& sums, const at::Tensor& factors) {
  constexpr std::int64_t kOne = std::int64_t{1} << 31;
  auto [mantissa, exponent] = at::frexp(factors);
  // 31 bits of the factor; one that rounds up to 1 is 0.5 of the next power of two.
  at::Tensor bits = at::round(mantissa * static_cast<double>(kOne)).to(at::kLong);
  exponent = exponent.to(at::kLong) + bits.eq(kOne);
  bits = at::where(bits.eq(kOne), at::full_like(bits, kOne / 2), bits);
  constexpr std::int64_t kLeast = -31;
  bits = at::where(exponent.lt(kLeast), at::zeros_like(bits), bits);
  const at::Tensor two = at::full({}, 2, at::kLong);
  const at::Tensor product = sums.to(at::kLong) * at::pow(two, exponent.clamp_min(0)) * bits;
  const at::Tensor nudge = at::where(product.ge(0), at::full({}, kOne / 2, at::kLong),
                                     at::full({}, 1 - kOne / 2, at::kLong));
  const at::Tensor high = at::div(product + nudge, kOne, "trunc");
  const at::Tensor unit = at::pow(two, exponent.clamp(kLeast, 0).neg());
  const at::Tensor below = at::div(high, unit, "floor");
  const at::Tensor rest = high - below * unit;
  const at::Tensor half = at::div(unit - 1, 2, "floor") + high.lt(0);
  return (below + rest.gt(half)).to(at::kDouble);
}

/// The sums with their bias, as numbers. In fixed point they come out on the scale that they are
/// quantised with first, so that rounding them to it once more changes nothing.
at::Tensor floats_of(const Call& call, at::Tensor sums, std::int64_t axis, bool twice) {
  const std::int64_t rank = sums.dim();
  const auto bias = [&] {
    return beside(call.in(LayerNode::kBias).to(at::kDouble).reshape(-1), axis, rank);
  };
  const bool biased = call.has(LayerNode::kBias);
  const bool whole = biased && call.in(LayerNode::kBias).scalar_type() == at::kInt;
  if (whole) sums = sums + bias();
  const at::Tensor source = call.in(LayerNode::kXScale).reshape({});
  const at::Tensor weight = beside(call.in(LayerNode::kWScale), axis, rank);
  const std::size_t first =
      call.has(LayerNode::kMiddleScale) ? LayerNode::kMiddleScale : LayerNode::kOutScale;
  if (twice && whole == biased && call.has(first)) {
    const at::Tensor to = call.in(first).to(at::kDouble).reshape({});
    return scaled_in_fixed_point(sums, source.to(at::kDouble) * weight.to(at::kDouble) / to) * to;
  }
  const at::Tensor steps = source.to(at::kFloat) * weight.to(at::kFloat);
  sums = sums * steps.to(at::kDouble);
  return biased && !whole ? sums + bias() : sums;
}

}  // namespace

Kernel exact_layer(const OpContext& context, SumsFunction sums, std::int64_t channel,
                   std::int64_t weight_axis) {
  const Fusion fusion = Fusion::activation_of(context.node);
  const Fusion sum = Fusion::activation_of(context.node, "sum_");
  const auto to = static_cast<DType>(context.node.get_int("to", 1));
  const at::ScalarType float_type = to == DType::Float16    ? at::kHalf
                                    : to == DType::BFloat16 ? at::kBFloat16
                                                            : at::kFloat;
  const bool twice = context.node.get_int("rounds_twice", 0) != 0;
  return [=](Call& call) {
    const at::Tensor x = shifted(call.in(LayerNode::kX), call.in(LayerNode::kXZero), 0);
    const at::Tensor w = shifted(call.in(LayerNode::kW), call.in(LayerNode::kWZero),
                                 wrap_axis(weight_axis, call.in(LayerNode::kW).dim()));
    at::Tensor result = sums(x, w);
    const std::int64_t rank = result.dim();
    const std::int64_t axis = wrap_axis(channel, rank);
    result = floats_of(call, std::move(result), axis, twice);
    const bool rounds_between = call.has(LayerNode::kMiddleScale);
    if (call.has(LayerNode::kResidual) && !rounds_between) result = result + residual_of(call);
    result = apply(fusion, result, {});
    if (rounds_between) result = apply(sum, rounded_once(call, result) + residual_of(call), {});
    if (!call.has(LayerNode::kOutScale)) return call.set(0, result.to(float_type));
    const at::Tensor zero =
        call.has(LayerNode::kOutZero) ? call.in(LayerNode::kOutZero) : at::zeros({}, at::kByte);
    result = result / beside(call.in(LayerNode::kOutScale).to(at::kDouble), axis, rank);
    call.set(0, to_integers(at::round(result), beside(zero, axis, rank), zero.scalar_type()));
  };
}

}  // namespace quench::exec
