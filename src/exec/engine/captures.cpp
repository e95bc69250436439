// SPDX-License-Identifier: Apache-2.0
// Values that graphs inside graphs read from outside.
#include "exec/engine/captures.h"

#include <set>
#include <string>

namespace quench::exec {
namespace {

/// Names that a graph, or a graph inside it, reads from outside of it. The reader bounds how deep
/// graphs lie in each other.
std::set<std::string> outer_reads(const Graph& graph) {
  std::set<std::string> names;
  for (const Value& value : graph.values()) {
    if (value.captured) names.insert(value.name);
  }
  for (const Node& node : graph.nodes) {
    for (const Graph* inner : subgraphs(node)) {
      for (const std::string& name : outer_reads(*inner)) {
        if (graph.find(name) == kNoValue) names.insert(name);
      }
    }
  }
  return names;
}

}  // namespace

Graph with_captures(Graph graph) {
  for (const std::string& name : outer_reads(graph)) {
    if (graph.find(name) != kNoValue) continue;
    Value value;
    value.name = name;
    value.captured = true;
    graph.add_value(std::move(value));
  }
  return graph;
}

}  // namespace quench::exec
