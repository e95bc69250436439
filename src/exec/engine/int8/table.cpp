// SPDX-License-Identifier: Apache-2.0
// Functions of one byte, looked up.
#include "exec/engine/int8/bytes.h"
#include "exec/engine/program.h"

namespace quench::exec {
namespace {

/// Runs the node's body on every byte there is.
Kernel make_table(const OpContext& context) {
  const auto* body = context.node.get<GraphBox>("body");
  const DType dtype = context.input_dtype(0);
  if (body == nullptr || (dtype != DType::UInt8 && dtype != DType::Int8)) {
    return refuse("a table needs a body and an 8-bit input");
  }
  const auto program = context.compile(**body);
  const at::ScalarType type = dtype == DType::Int8 ? at::kChar : at::kByte;
  const at::Tensor inputs = all_bytes(type);
  const std::vector<at::Tensor> results = program->run({&inputs, 1});
  if (results.size() != 1 || !results[0].defined() || results[0].numel() != inputs.numel()) {
    return refuse("its body does not give one byte for each");
  }
  const ByteTable table(type, results[0]);
  return [table](Call& call) { call.set(0, table(call.in(0))); };
}

template <typename Function>
Kernel function_table(const OpContext& context, Function function) {
  const auto in = take_grid(context, 1, 2, context.input_dtype(0));
  const auto out = take_grid(context, 3, 4, context.input_dtype(0));
  if (!in || !out) return refuse("its scales and zero points must be constants, one each");
  const at::Tensor real = dequantize_bytes(all_bytes(in->type), *in);
  const ByteTable table(in->type, quantize_floats(function(real), *out));
  return [table](Call& call) { call.set(0, table(call.in(0))); };
}

Kernel make_sigmoid(const OpContext& context) {
  return function_table(context, [](const at::Tensor& x) { return at::sigmoid(x); });
}

Kernel make_leaky_relu(const OpContext& context) {
  const float slope = context.node.get_float("alpha", 0.01F);
  return function_table(context, [=](const at::Tensor& x) { return at::leaky_relu(x, slope); });
}

}  // namespace

KernelInfo kernel_Table() { return {.make = make_table}; }
KernelInfo kernel_QLinearSigmoid() { return {.make = make_sigmoid}; }
KernelInfo kernel_QLinearLeakyRelu() { return {.make = make_leaky_relu}; }

}  // namespace quench::exec
