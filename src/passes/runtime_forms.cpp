// SPDX-License-Identifier: Apache-2.0
// Forms that mean the same and that runtimes do better with once the model is quantised.
#include <array>

#include "passes/hard_gate.h"

namespace quench::passes {
namespace {

std::int64_t rank(const Rewriter& rewriter, ValueId id) {
  const auto& shape = rewriter.graph()[id].type.shape;
  return shape ? static_cast<std::int64_t>(shape->size()) : -1;
}

/// One number a column, or one for all.
bool is_row(const Tensor& tensor, std::int64_t columns) {
  if (tensor.size() == 1) return tensor.rank() <= 2;
  const bool flat = tensor.rank() == 1 || (tensor.rank() == 2 && tensor.shape()[0] == 1);
  return flat && tensor.size() == columns;
}

/// ONNX Runtime makes a Gemm of a MatMul and its bias after it has looked for Q/DQ, and leaves that
/// Gemm in float. A Gemm from the start runs on integers, bias included.
void join_bias(Rewriter& rewriter, NodeId id) {
  const Node* product = rewriter.as(id, "MatMul");
  if (product == nullptr || product->inputs.size() != 2) return;
  const Tensor* weight = rewriter.constant(product->inputs[1]);
  if (weight == nullptr || weight->rank() != 2 || !is_real(weight->dtype()) ||
      rank(rewriter, product->inputs[0]) != 2) {
    return;
  }
  const ValueId result = product->outputs[0];
  const NodeId add_id = rewriter.next(result);
  const Node* add = rewriter.as(add_id, "Add");
  if (add == nullptr || add->inputs.size() != 2) return;
  const ValueId bias = other_operand(*add, result);
  const Tensor* numbers = bias == kNoValue ? nullptr : rewriter.constant(bias);
  if (numbers == nullptr || numbers->dtype() != weight->dtype() ||
      !is_row(*numbers, weight->shape()[1])) {
    return;
  }
  Node gemm;
  gemm.op_type = "Gemm";
  gemm.name = product->name;
  gemm.inputs = {product->inputs[0], product->inputs[1], bias};
  gemm.outputs = add->outputs;
  const std::array dead = {id};
  rewriter.replace(add_id, std::move(gemm), dead);
}

}  // namespace

PassReport matmul_to_gemm(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) join_bias(rewriter, id);
    }
  });
}

PassReport join_hard_gates(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, [](Rewriter& rewriter) {
    for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
      if (rewriter.alive(id)) join_hard_gate(rewriter, id);
    }
  });
}

}  // namespace quench::passes
