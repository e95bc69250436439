// SPDX-License-Identifier: Apache-2.0
// Constant nodes become constants of the values they make.
#include "passes/rewriter.h"

namespace quench::passes {
namespace {

template <typename T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, values);
}

/// The tensor a Constant node makes; nothing for sparse ones and for a caller's attribute.
std::optional<Tensor> value_of(const Node& node) {
  if (node.attributes.size() != 1 || !node.attributes.front().reference.empty()) return {};
  if (const auto* tensor = node.get<Tensor>("value")) return *tensor;
  if (const auto* number = node.get<float>("value_float")) return Tensor::scalar(*number);
  if (const auto* number = node.get<std::int64_t>("value_int")) return Tensor::scalar(*number);
  if (const auto* numbers = node.get<std::vector<float>>("value_floats")) {
    return vector_of(*numbers);
  }
  if (const auto* numbers = node.get<std::vector<std::int64_t>>("value_ints")) {
    return vector_of(*numbers);
  }
  if (const auto* text = node.get<std::string>("value_string")) {
    return Tensor::strings({}, {*text});
  }
  if (const auto* texts = node.get<std::vector<std::string>>("value_strings")) {
    return Tensor::strings({static_cast<std::int64_t>(texts->size())}, *texts);
  }
  return {};
}

std::size_t lift(Graph& graph) {
  std::size_t changes = 0;
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (Graph* inner : mutable_subgraphs(node)) changes += lift(*inner);
    if (node.op_type != "Constant" || !node.domain.empty() || node.outputs.size() != 1) continue;
    std::optional<Tensor> tensor = value_of(node);
    if (!tensor || node.outputs[0] == kNoValue) continue;
    // Shapes that another format's operator made are never weights: it is written as it stood.
    if (!node.foreign.empty() && !is_real(tensor->dtype())) continue;
    Value& value = graph[node.outputs[0]];
    value.type = ValueType::of(*tensor);
    value.constant = std::move(*tensor);
    dead[i] = true;
    ++changes;
  }
  compact(graph, dead);
  return changes;
}

}  // namespace

PassReport lift_constants(Model& model, const PassOptions& /*options*/) {
  return {.changes = lift(model.graph), .notes = {}};
}

}  // namespace quench::passes
