// SPDX-License-Identifier: Apache-2.0
// Finds what logarithms read, from the outputs back.
#include "plan/logarithm.h"

#include <algorithm>

#include "ops/facts.h"

namespace quench::plan {
namespace {

/// The input that a node hands on as it is but for a clamp or a constant; kNoValue: it computes
/// something else.
ValueId handed_on(const Graph& graph, const Node& node) {
  if (ops::is(node, ops::kMoves) || ops::facts(node).bounds != nullptr) return node.input(0);
  if (!ops::is(node, ops::kOperands)) return kNoValue;
  ValueId computed = kNoValue;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue || graph.constant(id) != nullptr) continue;
    if (computed != kNoValue) return kNoValue;
    computed = id;
  }
  return computed;
}

}  // namespace

std::vector<bool> read_by_logarithms(const Graph& graph) {
  std::vector<bool> read(graph.values().size(), false);
  const auto mark = [&](ValueId id) {
    if (id != kNoValue) read[static_cast<std::size_t>(id)] = true;
  };
  // Nodes are in an order in which they can run: one walk back meets readers before what they read.
  for (auto at = graph.nodes.rbegin(); at != graph.nodes.rend(); ++at) {
    const Node& node = *at;
    if (ops::is(node, ops::kRelative)) mark(node.input(0));
    const bool made_for_one = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kNoValue && read[static_cast<std::size_t>(id)];
    });
    if (made_for_one) mark(handed_on(graph, node));
  }
  return read;
}

}  // namespace quench::plan
