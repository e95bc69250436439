// SPDX-License-Identifier: Apache-2.0
// Layout of inputs and half-precision constants.
#include "compat/converter_lite/model_edits.h"

#include <algorithm>
#include <cmath>

#include "plan/facts.h"

namespace quench {
namespace {

using Perm = std::vector<std::int64_t>;

const Perm kToFirst = {0, 3, 1, 2};
const Perm kToLast = {0, 2, 3, 1};

Node make_node(std::string op_type, std::string name, ValueId from, ValueId to) {
  Node node;
  node.op_type = std::move(op_type);
  node.name = std::move(name);
  node.inputs = {from};
  node.outputs = {to};
  return node;
}

/// Nodes that do to an input what `perm` does.
bool drop_same(Graph& graph, ValueId input, const Perm& perm) {
  const Uses uses(graph);
  const auto& readers = uses.consumers[static_cast<std::size_t>(input)];
  const bool same = !readers.empty() && std::ranges::all_of(readers, [&](NodeId id) {
    const Node& node = graph.nodes[static_cast<std::size_t>(id)];
    return node.op_type == "Transpose" && node.get_ints("perm") == perm;
  });
  if (!same || uses.is_output[static_cast<std::size_t>(input)]) return false;
  std::vector<bool> dead(graph.nodes.size(), false);
  for (const NodeId id : readers) {
    const ValueId result = graph.nodes[static_cast<std::size_t>(id)].outputs[0];
    if (uses.is_output[static_cast<std::size_t>(result)]) return false;
  }
  for (const NodeId id : readers) {
    replace_uses(graph, graph.nodes[static_cast<std::size_t>(id)].outputs[0], input);
    dead[static_cast<std::size_t>(id)] = true;
  }
  compact(graph, dead);
  return true;
}

void move_channels(Graph& graph, std::size_t index, bool to_last) {
  ValueId input = graph.inputs[index];
  const std::vector<Dim> before = *graph[input].type.shape;
  // The user's own order comes in; the model's is made of it.
  const Perm& arrange = to_last ? kToLast : kToFirst;
  const Perm& back = to_last ? kToFirst : kToLast;
  std::vector<Dim> after;
  for (const std::int64_t axis : arrange) after.push_back(before[static_cast<std::size_t>(axis)]);
  // A Transpose of the model's own that already does what `arrange` does is no longer needed.
  if (!drop_same(graph, input, arrange)) {
    const ValueId inner = graph.add_fresh(graph[input].name + "_inner", graph[input].type);
    replace_uses(graph, input, inner);
    Node node = make_node("Transpose", "layout/" + graph[input].name, input, inner);
    node.set("perm", back);
    graph.nodes.insert(graph.nodes.begin(), std::move(node));
  }
  input = graph.inputs[index];
  graph[input].type.shape = after;
}

bool fits_half(const Tensor& tensor) {
  constexpr float kGreatest = 65504;
  return std::ranges::all_of(tensor.data<float>(),
                             [](float each) { return std::abs(each) <= kGreatest; });
}

/// Inputs of a node that it computes with: not scales, sizes or limits.
bool computes_with(const Node& node, std::size_t input) {
  const ops::OpFacts& known = ops::facts(node);
  const auto bit = 1U << input;
  const bool weight = input < 3 && ((known.weights & bit) != 0 || (known.learned & bit) != 0);
  const auto numbers = plan::data_inputs(node);
  return weight || known.bias == static_cast<int>(input) ||
         std::ranges::find(numbers, input) != numbers.end();
}

/// Whether every reader of a constant computes with it, which is what may be rounded.
bool is_computed_with(const Graph& graph, const Uses& uses, ValueId id) {
  const auto& readers = uses.consumers[static_cast<std::size_t>(id)];
  return std::ranges::all_of(readers, [&](NodeId reader) {
    const Node& node = graph.nodes[static_cast<std::size_t>(reader)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == id && !computes_with(node, i)) return false;
    }
    return true;
  });
}

}  // namespace

void move_input_channels(Model& model, bool to_last) {
  Graph& graph = model.graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const auto& shape = graph[graph.inputs[i]].type.shape;
    if (!shape || shape->size() != 4 || graph[graph.inputs[i]].constant) continue;
    move_channels(graph, i, to_last);
  }
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    Value& value = graph[static_cast<ValueId>(i)];
    const bool input =
        std::ranges::find(graph.inputs, static_cast<ValueId>(i)) != graph.inputs.end();
    if (!input && !value.constant) value.type.shape.reset();
  }
  (void)infer_types(model);
}

bool store_half(Model& model) {
  Graph& graph = model.graph;
  const std::size_t count = graph.values().size();
  const Uses uses(graph);
  std::vector<Node> casts;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<ValueId>(i);
    const Tensor* tensor = graph.constant(id);
    // A number alone saves nothing.
    const bool wanted = tensor != nullptr && tensor->dtype() == DType::Float32 &&
                        tensor->size() > 1 && fits_half(*tensor);
    const bool outside = std::ranges::count(graph.inputs, id) > 0;
    if (!wanted || outside || !is_computed_with(graph, uses, id)) continue;
    const Tensor half = convert(*tensor, DType::Float16);
    const ValueId stored = graph.add_constant(graph[id].name + "_fp16", half);
    Node cast = make_node("Cast", "fp16/" + graph[id].name, stored, id);
    cast.set("to", static_cast<std::int64_t>(DType::Float32));
    graph[id].constant.reset();
    casts.push_back(std::move(cast));
  }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(casts.begin()),
                     std::make_move_iterator(casts.end()));
  return !casts.empty();
}

}  // namespace quench
