// SPDX-License-Identifier: Apache-2.0
// Channels of zeros around depthwise convolutions, whose kernels take many channels at a time.
#include <numeric>

#include "passes/select_channels.h"
#include "quench/lower.h"

namespace quench {
namespace {

/// The old channels, and as many new ones as make a multiple.
passes::ChannelChoice padded(const passes::ChannelSets& sets, std::int64_t multiple) {
  passes::ChannelChoice result;
  for (const passes::ChannelLayer& layer : sets.layers()) {
    const std::int64_t over = layer.out % multiple;
    if (!layer.depthwise || over == 0 || !sets.is_free(layer.out_set)) continue;
    std::vector<std::int64_t> channels(static_cast<std::size_t>(layer.out));
    std::iota(channels.begin(), channels.end(), 0);
    channels.resize(static_cast<std::size_t>(layer.out + multiple - over), passes::kNewChannel);
    result.emplace(layer.out_set, std::move(channels));
  }
  return result;
}

std::int64_t constant_bytes(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Value& value : graph.values()) {
    if (value.constant) sum += static_cast<std::int64_t>(value.constant->num_bytes());
  }
  return sum;
}

/// The floats among the values of the sets, with the channels that they have now.
std::map<std::string, std::int64_t> float_values(const Graph& graph,
                                                 const passes::ChannelSets& sets,
                                                 const passes::ChannelChoice& choice) {
  std::map<std::string, std::int64_t> result;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Value& value = graph[static_cast<ValueId>(i)];
    if (!choice.contains(sets.set_of(static_cast<ValueId>(i))) || !value.type.shape) continue;
    if (info(value.type.dtype).is_float) result[value.name] = (*value.type.shape)[1].value;
  }
  return result;
}

}  // namespace

PaddedChannels pad_channels(Model& qdq, std::int64_t multiple) {
  if (multiple <= 1) return {};
  infer_types(qdq);
  const passes::ChannelSets sets(qdq.graph);
  const passes::ChannelChoice choice = padded(sets, multiple);
  if (choice.empty()) return {};
  PaddedChannels result{.bytes = -constant_bytes(qdq.graph),
                        .values = float_values(qdq.graph, sets, choice)};
  for (const passes::ChannelLayer& layer : sets.layers()) {
    if (layer.depthwise && choice.contains(layer.out_set)) ++result.layers;
  }
  passes::select_channels(qdq.graph, sets, choice);
  compact(qdq.graph, {});
  result.bytes += constant_bytes(qdq.graph);
  infer_types(qdq);
  verify(qdq);
  return result;
}

}  // namespace quench
