// SPDX-License-Identifier: Apache-2.0
// How a plan and a graph find each other's nodes.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "quench/plan.h"

namespace quench {

const std::string& output_name(const Graph& graph, const Node& node) {
  static const std::string none;
  for (const ValueId output : node.outputs) {
    if (output != kNoValue) return graph[output].name;
  }
  return none;
}

const Node& node_called(const Graph& graph, std::string_view output) {
  const ValueId id = graph.find(output);
  const auto found = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return id != kNoValue && std::ranges::find(node.outputs, id) != node.outputs.end();
  });
  if (found == graph.nodes.end()) fail(ErrorKind::Internal, "no node makes '{}'", output);
  return *found;
}

Node& node_called(Graph& graph, std::string_view output) {
  const Node& found = node_called(std::as_const(graph), output);
  return graph.nodes[static_cast<std::size_t>(&found - graph.nodes.data())];
}

bool QuantPlan::any_integers() const {
  return std::ranges::any_of(
      nodes, [](const auto& each) { return each.second.kind == NodePlan::Kind::Integer; });
}

const NodePlan& QuantPlan::of(const Graph& graph, const Node& node) const {
  static const NodePlan in_float;
  const auto found = nodes.find(output_name(graph, node));
  return found == nodes.end() ? in_float : found->second;
}

std::string QuantPlan::result_of(const std::string& node) const {
  const auto found = std::ranges::find_if(
      nodes, [&](const auto& each) { return !node.empty() && each.second.absorbed_by == node; });
  return found == nodes.end() ? node : found->first;
}

}  // namespace quench
