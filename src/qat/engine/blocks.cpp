// SPDX-License-Identifier: Apache-2.0
// Cuts a graph where one value carries everything.
#include "qat/engine/blocks.h"

#include <algorithm>

namespace quench::qat {
namespace {

/// By value: whether it depends on the graph's inputs.
std::vector<bool> activations(const Graph& graph) {
  std::vector<bool> result(graph.values().size(), false);
  for (const ValueId id : graph.inputs) {
    if (graph.constant(id) == nullptr) result[static_cast<std::size_t>(id)] = true;
  }
  for (const Node& node : graph.nodes) {
    const bool reads = std::ranges::any_of(node.inputs, [&](ValueId id) {
      return id != kNoValue && result[static_cast<std::size_t>(id)];
    });
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) result[static_cast<std::size_t>(id)] = reads;
    }
  }
  return result;
}

/// Values in order such that everything computed behind one of them depends on what is before only
/// through it.
std::vector<ValueId> cuts(const Graph& graph) {
  const std::vector<bool> active = activations(graph);
  const Uses uses(graph);
  std::vector<std::size_t> left(graph.values().size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = uses.consumers[i].size() + (uses.is_output[i] ? 1 : 0);
  }
  std::set<ValueId> open;
  const auto add = [&](ValueId id) {
    const auto at = static_cast<std::size_t>(id);
    if (id != kNoValue && active[at] && left[at] > 0) open.insert(id);
  };
  for (const ValueId id : graph.inputs) add(id);
  std::vector<ValueId> result;
  if (open.size() == 1) result.push_back(*open.begin());
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      if (--left[static_cast<std::size_t>(id)] == 0) open.erase(id);
    }
    for (const ValueId id : node.outputs) add(id);
    if (open.size() == 1 && (result.empty() || result.back() != *open.begin())) {
      result.push_back(*open.begin());
    }
  }
  return result;
}

}  // namespace

std::vector<Block> blocks_of(const Program& program, std::size_t layers) {
  const Graph& graph = program.graph();
  const Uses uses(graph);
  const std::vector<ValueId> all = cuts(graph);
  std::vector<Block> blocks;
  std::size_t first = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    Block block{.input = graph[all[first]].name, .output = graph[all[i]].name};
    block.weights = program.weights_between({block.input}, {block.output});
    const bool last = i + 1 == all.size();
    // An activation belongs to the layer before it: a piece ends where something is quantised.
    const auto planned = program.plan().values.find(block.output);
    const bool quantized =
        planned != program.plan().values.end() && planned->second.kind != ValuePlan::Kind::Float;
    const bool branches = uses.consumers[static_cast<std::size_t>(all[i])].size() > 1;
    const bool full = block.weights.size() >= layers || branches;
    if (block.weights.empty() || !(last || (quantized && full))) continue;
    blocks.push_back(std::move(block));
    first = i;
  }
  return blocks;
}

}  // namespace quench::qat
