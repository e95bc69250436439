// SPDX-License-Identifier: Apache-2.0
// The integer layers that fusion makes: on oneDNN where it can, in exact arithmetic elsewhere.
#include "exec/engine/int8/layers.h"

#include <array>

#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

Kernel make_conv(const OpContext& context) {
  if (auto fast = make_integer_conv(context)) return std::move(*fast);
  context.taken.clear();
  std::string refusal;
  const auto attributes = conv_attributes(context, LayerNode::kW, refusal);
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

constexpr std::size_t kGemmBias = 6;
/// By input of a LayerNode: where QGemm has it. The bias comes before the result's scale.
constexpr std::array<std::size_t, 9> kOfGemm = {0, 1, 2, 3, 4, 5, 7, 8, kGemmBias};

/// The rows of the first factor, and the scale of the sums, as the fused product has them.
KernelFunction from_gemm(KernelFunction product, bool transposed, double alpha) {
  return [=](Call& call) {
    std::vector<at::Tensor> slots;
    std::array<int, kOfGemm.size()> in{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<int>(i);
      slots.push_back(call.in(kOfGemm[i]));
    }
    if (transposed) slots[0] = slots[0].t();
    if (alpha != 1) slots[1] = slots[1] * alpha;
    const std::array<int, 1> out = {static_cast<int>(slots.size())};
    slots.emplace_back();
    Call inner(slots, in, out);
    product(inner);
    call.set(0, slots.back());
  };
}

/// ONNX Runtime's Gemm of bytes: a product with integer bias, and bytes or floats for its result.
Kernel make_gemm(const OpContext& context) {
  const double alpha = context.node.get_float("alpha", 1.0F);
  const bool transposed = context.node.get_int("transA", 0) != 0;
  const at::Tensor weight = context.constant(LayerNode::kW);
  const at::Tensor bias = context.constant(kGemmBias);
  if (!weight.defined() || weight.dim() != 2)
    return refuse("its second factor is no constant matrix");
  const std::int64_t width = weight.size(context.node.get_int("transB", 0) != 0 ? 0 : 1);
  if (context.has_input(kGemmBias) &&
      (!bias.defined() || (bias.numel() != width && bias.numel() != 1))) {
    return refuse("its bias is no constant of one number a column");
  }
  Node product = context.node;
  product.inputs.clear();
  for (const std::size_t i : kOfGemm) product.inputs.push_back(context.node.input(i));
  OpContext inner{.graph = context.graph, .node = product, .opset = context.opset};
  // Scales that are changed in every call are no constants of the fast kernels.
  inner.fast = context.fast && alpha == 1;
  inner.byte_products = context.byte_products;
  inner.among_bytes = context.among_bytes;
  Kernel kernel = make_matmul(inner);
  for (const std::size_t i : inner.taken) context.taken.push_back(kOfGemm.at(i));
  return Kernel(from_gemm(std::move(kernel.run), transposed, alpha));
}

}  // namespace

KernelInfo kernel_QGemm() { return {.make = make_gemm}; }
KernelInfo kernel_FusedQLinearConv() { return {.make = make_conv}; }
KernelInfo kernel_QLinearConvTranspose() { return {.make = make_conv_transpose}; }
KernelInfo kernel_FusedQLinearMatMul() { return {.make = make_matmul}; }

}  // namespace quench::exec
