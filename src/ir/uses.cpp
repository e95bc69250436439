// SPDX-License-Identifier: Apache-2.0
// Questions about a graph: who makes, who reads, what is inside.
#include <algorithm>

#include "base/format.h"
#include "quench/graph.h"

namespace quench {

Uses::Uses(const Graph& graph)
    : producer(graph.values().size(), -1),
      consumers(graph.values().size()),
      is_output(graph.values().size(), false) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto id = static_cast<NodeId>(n);
    for (const ValueId value : graph.nodes[n].inputs) {
      if (value != kNoValue) consumers[static_cast<std::size_t>(value)].push_back(id);
    }
    for (const ValueId value : graph.nodes[n].outputs) {
      if (value != kNoValue) producer[static_cast<std::size_t>(value)] = id;
    }
    for (const std::string& name : captured_names(graph.nodes[n])) {
      const ValueId value = graph.find(name);
      if (value != kNoValue) consumers[static_cast<std::size_t>(value)].push_back(id);
    }
  }
  for (const ValueId value : graph.outputs) is_output[static_cast<std::size_t>(value)] = true;
}

NodeId Uses::only_consumer(ValueId id) const {
  if (id == kNoValue) return -1;
  const auto index = static_cast<std::size_t>(id);
  if (is_output[index] || consumers[index].size() != 1) return -1;
  return consumers[index].front();
}

std::string label(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return format("{} node '{}'", node.op_type, node.name);
  for (const ValueId output : node.outputs) {
    if (output != kNoValue)
      return format("{} node that makes '{}'", node.op_type, graph[output].name);
  }
  return format("unnamed {} node", node.op_type);
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::ranges::replace(node.inputs, from, to);
  std::ranges::replace(graph.outputs, from, to);
}

void for_each_graph(const Graph& graph, const std::function<void(const Graph&)>& visit) {
  visit(graph);
  for (const Node& node : graph.nodes) {
    for (const Graph* inner : subgraphs(node)) for_each_graph(*inner, visit);
  }
}

std::vector<const Graph*> subgraphs(const Node& node) {
  std::vector<const Graph*> result;
  for (const Attribute& attribute : node.attributes) {
    if (const auto* box = std::get_if<GraphBox>(&attribute.data)) result.push_back(&**box);
    if (const auto* boxes = std::get_if<std::vector<GraphBox>>(&attribute.data)) {
      for (const GraphBox& each : *boxes) result.push_back(&*each);
    }
  }
  return result;
}

std::vector<std::string> captured_names(const Node& node) {
  std::vector<std::string> names;
  for (const Graph* inner : subgraphs(node)) {
    for_each_graph(*inner, [&](const Graph& graph) {
      for (const Value& value : graph.values()) {
        if (value.captured) names.push_back(value.name);
      }
    });
  }
  return names;
}

}  // namespace quench
