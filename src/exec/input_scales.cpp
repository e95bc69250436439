// SPDX-License-Identifier: Apache-2.0
// Finds the DequantizeLinear behind integers that come in.
#include "exec/input_scales.h"

#include <optional>

#include "base/format.h"
#include "formats/foreign.h"
#include "ops/facts.h"

namespace quench::exec {
namespace {

/// The node that dequantises a value, maybe after it was moved; null: none.
const Node* dequantizer(const Graph& graph, const Uses& uses, ValueId value) {
  constexpr int kMost = 8;
  for (int step = 0; step < kMost && value != kNoValue; ++step) {
    ValueId moved = kNoValue;
    for (const NodeId id : uses.consumers[static_cast<std::size_t>(value)]) {
      const Node& node = graph.nodes[static_cast<std::size_t>(id)];
      if (node.op_type == "DequantizeLinear" && node.input(0) == value) return &node;
      if (ops::is(node, ops::kMoves) && node.input(0) == value) moved = node.outputs[0];
    }
    value = moved;
  }
  return nullptr;
}

}  // namespace

void note_scales(const Graph& graph, std::vector<Value>& inputs) {
  std::optional<Uses> uses;
  for (Value& input : inputs) {
    if (input.type.dtype != DType::Int8 && input.type.dtype != DType::UInt8) continue;
    if (!uses) uses.emplace(graph);
    const Node* node = dequantizer(graph, *uses, graph.find(input.name));
    const Tensor* scale = node == nullptr ? nullptr : graph.constant(node->input(1));
    const Tensor* zero = node == nullptr ? nullptr : graph.constant(node->input(2));
    if (scale == nullptr || scale->size() != 1) continue;
    const double offset = zero == nullptr ? 0.0 : double{to_float(*zero).at(0)};
    input.foreign =
        make_foreign(kScaleOfInput, format("{} {}", double{to_float(*scale)[0]}, offset));
  }
}

}  // namespace quench::exec
