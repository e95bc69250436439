// SPDX-License-Identifier: Apache-2.0
// The first and the last values of a model.
#include "plan/edges.h"

#include <algorithm>

#include "plan/facts.h"

namespace quench::plan {

std::vector<bool> edge_values(const Graph& graph, const Uses& uses) {
  std::vector<bool> edges = uses.is_output;
  const auto mark = [](std::vector<bool>& marks, ValueId id) {
    if (id != kNoValue) marks[static_cast<std::size_t>(id)] = true;
  };
  std::vector<bool> behind = uses.is_output;  // no layer lies between it and the outputs
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool last = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kNoValue && behind[static_cast<std::size_t>(id)];
    });
    if (!last) continue;
    if (is_layer(node)) {
      mark(edges, node.input(0));
    } else {
      for (const ValueId input : node.inputs) mark(behind, input);
    }
  }
  for (const ValueId id : graph.inputs) mark(edges, id);
  return edges;
}

}  // namespace quench::plan
