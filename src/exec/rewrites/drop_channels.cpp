// SPDX-License-Identifier: Apache-2.0
// Leaves out channels that are computed for nothing: those added to please another runtime's
// kernels, and those that pruning has left behind.
#include <algorithm>

#include "exec/rewrites/rewrite.h"
#include "passes/select_channels.h"

namespace quench::exec::rewrites {
namespace {

/// Marks the channels that one of the layer's weights multiplies by more than zero.
void mark_read(const Tensor& weight, std::vector<bool>& read) {
  const Tensor held = weight.held();
  const std::span<const std::byte> bytes = held.bytes();
  const auto inputs = static_cast<std::size_t>(weight.shape()[1]);
  const std::size_t filter = bytes.size() / static_cast<std::size_t>(weight.shape()[0]) / inputs;
  read.resize(inputs, false);
  for (std::size_t at = 0, channel = 0; at < bytes.size(); at += filter) {
    if (!read[channel]) {
      read[channel] = std::ranges::any_of(bytes.subspan(at, filter),
                                          [](std::byte each) { return each != std::byte{0}; });
    }
    if (++channel == inputs) channel = 0;
  }
}

/// Zero times a byte's number is zero; times whatever a float may be it need not.
bool reads_bytes(const Graph& graph, const Uses& uses, const Node& node) {
  const NodeId maker = uses.producer[static_cast<std::size_t>(node.inputs[0])];
  return maker >= 0 && graph.nodes[static_cast<std::size_t>(maker)].op_type == "DequantizeLinear";
}

/// By set, which of its channels some layer reads.
std::map<ValueId, std::vector<bool>> channels_read(const Graph& graph, ChannelSets& sets) {
  const Uses uses(graph);
  std::map<ValueId, std::vector<bool>> result;
  for (const ChannelLayer& layer : sets.layers()) {
    if (layer.depthwise) continue;
    const Node& node = graph.nodes[static_cast<std::size_t>(layer.node)];
    if (!reads_bytes(graph, uses, node)) sets.hold(node.inputs[0]);
    if (sets.is_free(layer.in_set)) {
      mark_read(*sets.constant_behind(node.inputs[1]), result[layer.in_set]);
    }
  }
  std::erase_if(result, [&](const auto& each) { return !sets.is_free(each.first); });
  return result;
}

/// Those that are read, and as many of zeros as make whole groups, as products of bytes read them.
std::vector<std::int64_t> channels_left(const std::vector<bool>& read) {
  constexpr std::size_t kMultiple = 4;
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i]) result.push_back(static_cast<std::int64_t>(i));
  }
  const std::size_t least = std::max<std::size_t>(result.size(), 1);
  result.resize((least + kMultiple - 1) / kMultiple * kMultiple, kNewChannel);
  return result;
}

}  // namespace

PassReport drop_channels(Model& model, const PassOptions& options) {
  ChannelSets sets(model.graph);
  for (const std::string& name : options.keep) {
    if (const ValueId id = model.graph.find(name); id != kNoValue) sets.hold(id);
  }
  PassReport report;
  ChannelChoice choice;
  for (const auto& [set, read] : channels_read(model.graph, sets)) {
    std::vector<std::int64_t> left = channels_left(read);
    if (left.size() >= read.size()) continue;
    report.changes += read.size() - left.size();
    choice.emplace(set, std::move(left));
  }
  if (report.changes > 0) select_channels(model.graph, sets, choice);
  return report;
}

}  // namespace quench::exec::rewrites
