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

}  // namespace

Kernel exact_layer(const OpContext& context, SumsFunction sums, std::int64_t channel,
                   std::int64_t weight_axis) {
  const Fusion fusion = Fusion::activation_of(context.node);
  const Fusion sum = Fusion::activation_of(context.node, "sum_");
  const auto to = static_cast<DType>(context.node.get_int("to", 1));
  const at::ScalarType float_type = to == DType::Float16    ? at::kHalf
                                    : to == DType::BFloat16 ? at::kBFloat16
                                                            : at::kFloat;
  return [=](Call& call) {
    const at::Tensor x = shifted(call.in(LayerNode::kX), call.in(LayerNode::kXZero), 0);
    const at::Tensor w = shifted(call.in(LayerNode::kW), call.in(LayerNode::kWZero),
                                 wrap_axis(weight_axis, call.in(LayerNode::kW).dim()));
    at::Tensor result = sums(x, w);
    const std::int64_t rank = result.dim();
    const std::int64_t axis = wrap_axis(channel, rank);
    const at::Tensor steps = call.in(LayerNode::kXScale).to(at::kFloat).reshape({}) *
                             beside(call.in(LayerNode::kWScale).to(at::kFloat), axis, rank);
    const bool whole =
        call.has(LayerNode::kBias) && call.in(LayerNode::kBias).scalar_type() == at::kInt;
    if (whole)
      result = result + beside(call.in(LayerNode::kBias).to(at::kDouble).reshape(-1), axis, rank);
    result = result * steps.to(at::kDouble);
    if (call.has(LayerNode::kBias) && !whole) {
      result = result + beside(call.in(LayerNode::kBias).to(at::kDouble).reshape(-1), axis, rank);
    }
    const bool rounds_twice = call.has(LayerNode::kMiddleScale);
    if (call.has(LayerNode::kResidual) && !rounds_twice) result = result + residual_of(call);
    result = apply(fusion, result, {});
    if (rounds_twice) result = apply(sum, rounded_once(call, result) + residual_of(call), {});
    if (!call.has(LayerNode::kOutScale)) return call.set(0, result.to(float_type));
    const at::Tensor zero =
        call.has(LayerNode::kOutZero) ? call.in(LayerNode::kOutZero) : at::zeros({}, at::kByte);
    result = result / beside(call.in(LayerNode::kOutScale).to(at::kDouble), axis, rank);
    call.set(0, to_integers(at::round(result), beside(zero, axis, rank), zero.scalar_type()));
  };
}

}  // namespace quench::exec
