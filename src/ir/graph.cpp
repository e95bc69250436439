// SPDX-License-Identifier: Apache-2.0
// Adding, naming and finding values; removing what is dead.
#include "quench/graph.h"

#include <algorithm>

#include "base/format.h"

namespace quench {

ValueId Graph::add_value(Value value) {
  if (value.name.empty()) fail(ErrorKind::BadModel, "a value has no name");
  const auto id = static_cast<ValueId>(values_.size());
  if (!index_.emplace(value.name, id).second) {
    fail(ErrorKind::BadModel, "the name '{}' is used for two values", value.name);
  }
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_fresh(std::string_view stem, ValueType type) {
  Value value;
  value.name = stem;
  for (int suffix = 1; index_.contains(value.name); ++suffix) {
    value.name = format("{}_{}", stem, suffix);
  }
  value.type = std::move(type);
  return add_value(std::move(value));
}

ValueId Graph::add_constant(std::string_view stem, Tensor tensor) {
  const ValueId id = add_fresh(stem, ValueType::of(tensor));
  (*this)[id].constant = std::move(tensor);
  return id;
}

Node& Graph::add_node(std::string op_type, std::vector<ValueId> node_inputs,
                      const std::vector<std::string>& node_outputs) {
  Node node;
  node.op_type = std::move(op_type);
  node.inputs = std::move(node_inputs);
  for (const std::string& output : node_outputs) {
    const ValueId known = find(output);
    node.outputs.push_back(known != kNoValue ? known : add_fresh(output));
  }
  nodes.push_back(std::move(node));
  return nodes.back();
}

void Graph::rename(ValueId id, std::string new_name) {
  Value& value = (*this)[id];
  if (value.name == new_name) return;
  if (!index_.emplace(new_name, id).second) {
    fail(ErrorKind::BadModel, "the name '{}' is used for two values", new_name);
  }
  index_.erase(value.name);
  value.name = std::move(new_name);
}

ValueId Graph::find(std::string_view value_name) const {
  const auto found = index_.find(value_name);
  return found == index_.end() ? kNoValue : found->second;
}

const Tensor* Graph::constant(ValueId id) const noexcept {
  if (id == kNoValue) return nullptr;
  const Value& value = (*this)[id];
  return value.constant ? &*value.constant : nullptr;
}

namespace {

void renumber(std::vector<ValueId>& ids, const std::vector<ValueId>& new_ids) {
  for (ValueId& id : ids) {
    if (id != kNoValue) id = new_ids[static_cast<std::size_t>(id)];
  }
}

void mark(const std::vector<ValueId>& ids, std::vector<bool>& used) {
  for (const ValueId id : ids) {
    if (id != kNoValue) used[static_cast<std::size_t>(id)] = true;
  }
}

}  // namespace

void compact(Graph& graph, const std::vector<bool>& dead_nodes) {
  std::vector<Node> kept;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i >= dead_nodes.size() || !dead_nodes[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
  std::vector<bool> used(graph.values().size(), false);
  mark(graph.inputs, used);
  mark(graph.outputs, used);
  for (const Node& node : graph.nodes) {
    mark(node.inputs, used);
    mark(node.outputs, used);
    // Graphs inside the node read outer values by name.
    for (const std::string& captured : captured_names(node)) mark({graph.find(captured)}, used);
  }
  Graph fresh;
  std::vector<ValueId> new_ids(graph.values().size(), kNoValue);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) new_ids[i] = fresh.add_value(std::move(graph[static_cast<ValueId>(i)]));
  }
  fresh.name = std::move(graph.name);
  fresh.foreign = std::move(graph.foreign);
  fresh.inputs = std::move(graph.inputs);
  fresh.outputs = std::move(graph.outputs);
  fresh.nodes = std::move(graph.nodes);
  renumber(fresh.inputs, new_ids);
  renumber(fresh.outputs, new_ids);
  for (Node& node : fresh.nodes) {
    renumber(node.inputs, new_ids);
    renumber(node.outputs, new_ids);
  }
  graph = std::move(fresh);
}

}  // namespace quench
