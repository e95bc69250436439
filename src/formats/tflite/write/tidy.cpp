// SPDX-License-Identifier: Apache-2.0
// What a graph has that TFLite does not need: nodes that give constants, and nodes that compute
// shapes which are known.
#include "formats/tidy.h"

#include <algorithm>
#include <array>

#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

/// Every size but that of the batch.
bool has_known_sizes(const ValueType& type) {
  if (!type.shape) return false;
  return std::ranges::all_of(type.shape->begin() + (type.shape->empty() ? 0 : 1), type.shape->end(),
                             [](const Dim& dim) { return dim.known(); });
}

/// Casts of halves to floats: constants of 16 bits, which a DEQUANTIZE reads in TFLite.
std::set<std::string> lift_halves(Graph& graph) {
  std::set<std::string> names;
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const Tensor* from = node.op_type == "Cast" ? graph.constant(node.inputs[0]) : nullptr;
    const bool to_floats = node.get_int("to", 0) == static_cast<std::int64_t>(DType::Float32);
    if (from == nullptr || from->dtype() != DType::Float16 || !to_floats) continue;
    names.insert(graph[node.outputs[0]].name);
    graph[node.outputs[0]].constant = convert(*from, DType::Float32);
    dead[i] = true;
  }
  compact(graph, dead);
  return names;
}

/// Shapes that are computed for a node whose result has a known one: the node is written by that.
void store_known_shapes(Graph& graph) {
  static constexpr std::array<std::string_view, 3> kReshapes = {"Reshape", "Squeeze", "Unsqueeze"};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool computed = node.input(1) != kNoValue && graph.constant(node.inputs[1]) == nullptr &&
                          std::ranges::find(kReshapes, node.op_type) != kReshapes.end();
    if (!computed || !has_known_sizes(graph[node.outputs[0]].type)) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : *graph[node.outputs[0]].type.shape) {
      shape.push_back(dim.known() ? dim.value : -1);
    }
    const ValueId stored = graph.add_constant(node.name + "/shape",
                                              Tensor::of<std::int64_t>({std::ssize(shape)}, shape));
    graph.nodes[i].inputs[1] = stored;
  }
}

/// Nodes of which nothing is read, the last first.
void drop_unread(Graph& graph) {
  const Uses uses(graph);
  std::vector<std::size_t> readers(graph.values().size());
  for (std::size_t i = 0; i < readers.size(); ++i) readers[i] = uses.consumers[i].size();
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    dead[i] = std::ranges::all_of(node.outputs, [&](ValueId id) {
      const auto index = static_cast<std::size_t>(id);
      return id == kNoValue || (readers[index] == 0 && !uses.is_output[index]);
    });
    if (!dead[i]) continue;
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) --readers[static_cast<std::size_t>(id)];
    }
  }
  compact(graph, dead);
}

}  // namespace

std::set<std::string> tidy(Model& model) {
  formats::lift_constants(model.graph);
  std::set<std::string> halves = lift_halves(model.graph);
  (void)infer_types(model);
  store_known_shapes(model.graph);
  drop_unread(model.graph);
  return halves;
}

}  // namespace quench::tflite::write
