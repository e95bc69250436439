// SPDX-License-Identifier: Apache-2.0
// Counts layers backwards from the outputs.
#include "plan/layers_behind.h"

#include <deque>

#include "ops/facts.h"

namespace quench::plan {
namespace {

/// How many layers a node counts for.
int cost(const Node& node) {
  constexpr std::uint32_t kNone = ops::kPointwise | ops::kMoves | ops::kOneByOne;
  return (ops::facts(node).is & kNone) != 0 ? 0 : 1;
}

}  // namespace

std::map<std::string, int> layers_behind(const Graph& graph) {
  const Uses uses(graph);
  std::map<std::string, int> result;
  // Values in the order of their distance: what lies behind no further layer goes to the front.
  std::deque<std::pair<ValueId, int>> pending;
  for (const ValueId output : graph.outputs) pending.emplace_back(output, 0);
  while (!pending.empty()) {
    const auto [value, distance] = pending.front();
    pending.pop_front();
    if (value == kNoValue || !result.emplace(graph[value].name, distance).second) continue;
    const NodeId maker = uses.producer[static_cast<std::size_t>(value)];
    if (maker < 0) continue;
    const Node& node = graph.nodes[static_cast<std::size_t>(maker)];
    for (const ValueId input : node.inputs) {
      if (cost(node) == 0) {
        pending.emplace_front(input, distance);
      } else {
        pending.emplace_back(input, distance + 1);
      }
    }
  }
  return result;
}

}  // namespace quench::plan
