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
  return shifted(call.in(9), call.in(11), 0) * call.in(10).to(at::kDouble).reshape({});
}

/// On the grid of inputs 12 and 13 and back.
at::Tensor rounded_once(const Call& call, const at::Tensor& real) {
  const at::Tensor scale = call.in(12).to(at::kDouble).reshape({});
  const at::Tensor zero = call.has(13) ? call.in(13).reshape({}) : at::zeros({}, at::kByte);
  const at::Tensor bytes = to_grid(at::round(real / scale), zero, zero.scalar_type());
  return shifted(bytes, zero, 0) * scale;
}

}  // namespace

Kernel exact_layer(const OpContext& context, SumsFunction sums, std::int64_t channel,
                   std::int64_t weight_axis) {
  Fusion fusion;
  fusion.activation = context.node.get_string("activation", "");
  fusion.alpha = context.node.get_float("activation_alpha", 0);
  fusion.beta = context.node.get_float("activation_beta", 0);
  Fusion sum;
  sum.activation = context.node.get_string("sum_activation", "");
  sum.alpha = context.node.get_float("sum_activation_alpha", 0);
  sum.beta = context.node.get_float("sum_activation_beta", 0);
  const auto to = static_cast<DType>(context.node.get_int("to", 1));
  const at::ScalarType real = to == DType::Float16    ? at::kHalf
                              : to == DType::BFloat16 ? at::kBFloat16
                                                      : at::kFloat;
  return [=](Call& call) {
    const at::Tensor x = shifted(call.in(0), call.in(2), 0);
    const at::Tensor w = shifted(call.in(3), call.in(5), wrap_axis(weight_axis, call.in(3).dim()));
    at::Tensor result = sums(x, w);
    const std::int64_t rank = result.dim();
    const std::int64_t axis = wrap_axis(channel, rank);
    const at::Tensor steps =
        call.in(1).to(at::kFloat).reshape({}) * beside(call.in(4).to(at::kFloat), axis, rank);
    const bool whole = call.has(8) && call.in(8).scalar_type() == at::kInt;
    if (whole) result = result + beside(call.in(8).to(at::kDouble).reshape(-1), axis, rank);
    result = result * steps.to(at::kDouble);
    if (call.has(8) && !whole) {
      result = result + beside(call.in(8).to(at::kDouble).reshape(-1), axis, rank);
    }
    if (call.has(9) && !call.has(12)) result = result + residual_of(call);
    result = apply(fusion, result, {});
    if (call.has(12)) result = apply(sum, rounded_once(call, result) + residual_of(call), {});
    if (!call.has(6)) return call.set(0, result.to(real));
    const at::Tensor zero = call.has(7) ? call.in(7) : at::zeros({}, at::kByte);
    result = result / beside(call.in(6).to(at::kDouble), axis, rank);
    call.set(0, to_grid(at::round(result), beside(zero, axis, rank), zero.scalar_type()));
  };
}

}  // namespace quench::exec
