// SPDX-License-Identifier: Apache-2.0
// The part of a model that computes certain values.
#include "passes/part_of.h"

#include <algorithm>

namespace quench::passes {

std::vector<ValueId> values_read(const Graph& graph, const Node& node) {
  std::vector<ValueId> ids;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) ids.push_back(id);
  }
  for (const std::string& name : captured_names(node)) {
    if (const ValueId id = graph.find(name); id != kNoValue) ids.push_back(id);
  }
  return ids;
}

Model part_of(const Model& model, const std::vector<std::string>& values,
              const std::vector<std::string>& from) {
  Model part = model;
  Graph& graph = part.graph;
  std::vector<bool> wanted(graph.values().size(), false);
  std::vector<bool> given(graph.values().size(), false);
  if (!from.empty()) graph.inputs.clear();
  for (const std::string& name : from) {
    graph.inputs.push_back(graph.find(name));
    given[static_cast<std::size_t>(graph.inputs.back())] = true;
  }
  graph.outputs.clear();
  for (const std::string& name : values) {
    const ValueId id = graph.find(name);
    wanted[static_cast<std::size_t>(id)] = true;
    if (std::ranges::find(graph.outputs, id) == graph.outputs.end()) graph.outputs.push_back(id);
  }
  std::vector<bool> dead(graph.nodes.size(), true);
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    dead[i] = std::ranges::none_of(node.outputs, [&](ValueId id) {
      return id != kNoValue && wanted[static_cast<std::size_t>(id)] &&
             !given[static_cast<std::size_t>(id)];
    });
    if (dead[i]) continue;
    for (const ValueId id : values_read(graph, node)) wanted[static_cast<std::size_t>(id)] = true;
  }
  compact(graph, dead);
  return part;
}

}  // namespace quench::passes
