// SPDX-License-Identifier: Apache-2.0
// Activations.
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

at::Tensor softplus(const at::Tensor& x) { return at::softplus(x); }
at::Tensor softsign(const at::Tensor& x) { return x / (at::abs(x) + 1); }

/// A scalar bound: attribute before opset 11, input afterwards.
std::optional<at::Scalar> bound(const Call& call, std::size_t input,
                                const std::optional<float>& fixed) {
  if (fixed) return at::Scalar(*fixed);
  if (call.has(input)) return call.in(input).item();
  return std::nullopt;
}

std::optional<float> float_attribute(const OpContext& context, std::string_view name) {
  const float* value = context.node.get<float>(name);
  return value == nullptr ? std::nullopt : std::optional<float>(*value);
}

Kernel make_clip(const OpContext& context) {
  const bool attributes = context.opset < 11;
  const auto low = attributes ? float_attribute(context, "min") : std::nullopt;
  const auto high = attributes ? float_attribute(context, "max") : std::nullopt;
  return [low, high](Call& call) {
    const auto least = bound(call, 1, low);
    const auto most = bound(call, 2, high);
    const at::Tensor& x = call.in(0);
    if (least && most) return call.set(0, at::clamp(x, *least, *most));
    if (least) return call.set(0, at::clamp_min(x, *least));
    call.set(0, most ? at::clamp_max(x, *most) : x);
  };
}

/// A function of one element with the attribute alpha.
template <at::Tensor (*kFunction)(const at::Tensor&, float)>
Kernel make_with_alpha(const OpContext& context, float otherwise) {
  const float alpha = context.node.get_float("alpha", otherwise);
  return map_input([alpha](const at::Tensor& x) { return kFunction(x, alpha); });
}

at::Tensor leaky_relu(const at::Tensor& x, float alpha) { return at::leaky_relu(x, alpha); }
at::Tensor elu(const at::Tensor& x, float alpha) { return at::elu(x, alpha); }
at::Tensor celu(const at::Tensor& x, float alpha) { return at::celu(x, alpha); }
at::Tensor thresholded(const at::Tensor& x, float alpha) { return at::threshold(x, alpha, 0); }

Kernel make_leaky_relu(const OpContext& context) {
  return make_with_alpha<leaky_relu>(context, 0.01F);
}
Kernel make_elu(const OpContext& context) { return make_with_alpha<elu>(context, 1.0F); }
Kernel make_celu(const OpContext& context) { return make_with_alpha<celu>(context, 1.0F); }
Kernel make_thresholded_relu(const OpContext& context) {
  return make_with_alpha<thresholded>(context, 1.0F);
}

Kernel make_selu(const OpContext& context) {
  const float alpha = context.node.get_float("alpha", 1.67326319F);
  const float gamma = context.node.get_float("gamma", 1.05070102F);
  return map_input([=](const at::Tensor& x) { return at::elu(x, alpha, gamma); });
}

Kernel make_hard_sigmoid(const OpContext& context) {
  const float alpha = context.node.get_float("alpha", 0.2F);
  const float beta = context.node.get_float("beta", 0.5F);
  return map_input([=](const at::Tensor& x) { return at::mul(x, alpha).add_(beta).clamp_(0, 1); });
}

Kernel make_gelu(const OpContext& context) {
  const std::string how = context.node.get_string("approximate", "none");
  if (how != "none" && how != "tanh") return refuse("approximate '{}' is not known", how);
  return map_input([how](const at::Tensor& x) { return at::gelu(x, how); });
}

Kernel make_swish(const OpContext& context) {
  const float alpha = context.node.get_float("alpha", 1.0F);
  if (alpha == 1.0F) return unary<at::silu, at::silu_>().make(context);
  return map_input([alpha](const at::Tensor& x) { return x * at::sigmoid(x * alpha); });
}

Kernel make_shrink(const OpContext& context) {
  const float bias = context.node.get_float("bias", 0.0F);
  const float lambda = context.node.get_float("lambd", 0.5F);
  return map_input([=](const at::Tensor& x) {
    const at::Tensor zero = at::zeros({}, x.options());
    const at::Tensor result =
        at::where(x < -lambda, x + bias, at::where(x > lambda, x - bias, zero));
    return result.to(x.scalar_type());
  });
}

Kernel make_prelu(const OpContext& context) {
  const bool by_channel = context.opset < 7;
  return [by_channel](Call& call) {
    const at::Tensor& x = call.in(0);
    at::Tensor slope = call.in(1);
    if (by_channel && slope.dim() == 1 && x.dim() > 1) slope = along_axis(slope, 1, x.dim());
    call.set(0, at::where(x < 0, x * slope, x));
  };
}

/// Before opset 13 the input was seen as a matrix split at `axis`; since then only one axis counts.
template <at::Tensor (*kFunction)(const at::Tensor&, std::int64_t)>
Kernel make_along_axis(const OpContext& context) {
  const bool flatten = context.opset < 13;
  const std::int64_t axis = context.node.get_int("axis", flatten ? 1 : -1);
  return map_input([=](const at::Tensor& x) {
    if (!flatten) return kFunction(x, wrap_axis(axis, x.dim()));
    std::int64_t rows = 1;
    const std::int64_t split = axis == x.dim() ? axis : wrap_axis(axis, x.dim());
    for (std::int64_t i = 0; i < split; ++i) rows *= x.size(i);
    const std::int64_t columns = rows == 0 ? 0 : x.numel() / rows;
    return kFunction(x.reshape({rows, columns}), 1).reshape(x.sizes());
  });
}

at::Tensor softmax(const at::Tensor& x, std::int64_t axis) { return at::softmax(x, axis); }
Kernel make_softmax(const OpContext& context) {
  return context.fast ? make_along_axis<fast_softmax>(context) : make_along_axis<softmax>(context);
}
at::Tensor log_softmax(const at::Tensor& x, std::int64_t axis) { return at::log_softmax(x, axis); }
at::Tensor hardmax(const at::Tensor& x, std::int64_t axis) {
  if (x.numel() == 0) return x;
  return at::zeros_like(x).scatter_(axis, at::argmax(x, axis, true), 1);
}

}  // namespace

KernelInfo kernel_Relu() { return unary<at::relu, at::relu_>(); }
KernelInfo kernel_Sigmoid() { return unary<at::sigmoid, at::sigmoid_>(); }
KernelInfo kernel_Tanh() { return unary<at::tanh, at::tanh_>(); }
KernelInfo kernel_Softplus() { return unary<softplus>(1); }
KernelInfo kernel_Softsign() { return unary<softsign>(1); }
// Passes put these four into models of any opset.
KernelInfo kernel_HardSwish() { return unary<at::hardswish, at::hardswish_>(); }
KernelInfo kernel_Mish() { return unary<at::mish, at::mish_>(); }
KernelInfo kernel_Gelu() { return {.make = make_gelu}; }
KernelInfo kernel_Swish() { return {.make = make_swish}; }
KernelInfo kernel_Clip() { return {.since = 1, .make = make_clip}; }
KernelInfo kernel_LeakyRelu() { return {.since = 1, .make = make_leaky_relu}; }
KernelInfo kernel_Elu() { return {.since = 1, .make = make_elu}; }
KernelInfo kernel_Selu() { return {.since = 6, .make = make_selu}; }
KernelInfo kernel_Celu() { return {.since = 12, .make = make_celu}; }
KernelInfo kernel_HardSigmoid() { return {.since = 1, .make = make_hard_sigmoid}; }
KernelInfo kernel_ThresholdedRelu() { return {.since = 1, .make = make_thresholded_relu}; }
KernelInfo kernel_Shrink() { return {.since = 9, .make = make_shrink}; }
KernelInfo kernel_PRelu() { return {.since = 1, .make = make_prelu}; }
KernelInfo kernel_Softmax() { return {.since = 1, .make = make_softmax}; }
KernelInfo kernel_LogSoftmax() { return {.since = 1, .make = make_along_axis<log_softmax>}; }
KernelInfo kernel_Hardmax() { return {.since = 1, .make = make_along_axis<hardmax>}; }

}  // namespace quench::exec
