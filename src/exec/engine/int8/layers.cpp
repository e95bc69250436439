// SPDX-License-Identifier: Apache-2.0
// The integer layers that fusion makes: on oneDNN where it can, in exact arithmetic elsewhere.
#include "exec/engine/int8/layers.h"

#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

Kernel make_conv(const OpContext& context) {
  if (auto fast = make_integer_conv(context)) return std::move(*fast);
  context.taken.clear();
  std::string refusal;
  const auto attributes = conv_attributes(context, 3, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  const auto sums = [attributes = *attributes](const at::Tensor& x, const at::Tensor& w) {
    return convolve(x, w, {}, attributes);
  };
  return exact_layer(context, sums, 1, 0);
}

Kernel make_conv_transpose(const OpContext& context) {
  if (auto fast = make_integer_conv_transpose(context)) return std::move(*fast);
  context.taken.clear();
  Kernel plain = make_reference_conv_transpose(context);
  if (!plain.run) return plain;
  const auto sums = [run = std::move(plain.run)](const at::Tensor& x, const at::Tensor& w) {
    std::vector<at::Tensor> slots = {x, w, at::Tensor()};
    const std::array<int, 2> in = {0, 1};
    const std::array<int, 1> out = {2};
    Call call(slots, in, out);
    run(call);
    return slots[2];
  };
  return exact_layer(context, sums, 1, 1);
}

Kernel make_matmul(const OpContext& context) {
  if (auto fast = make_integer_matmul(context)) return std::move(*fast);
  context.taken.clear();
  const bool transposed = context.node.get_int("transB", 0) != 0;
  const auto sums = [transposed](const at::Tensor& x, const at::Tensor& w) {
    return at::matmul(x, transposed ? w.t() : w);
  };
  return exact_layer(context, sums, -1, transposed ? 0 : -1);
}

}  // namespace

KernelInfo kernel_FusedQLinearConv() { return {.make = make_conv}; }
KernelInfo kernel_QLinearConvTranspose() { return {.make = make_conv_transpose}; }
KernelInfo kernel_FusedQLinearMatMul() { return {.make = make_matmul}; }

}  // namespace quench::exec
