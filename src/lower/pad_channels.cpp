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

}  // namespace

void pad_channels(Model& qdq, std::int64_t multiple) {
  if (multiple <= 1) return;
  infer_types(qdq);
  const passes::ChannelSets sets(qdq.graph);
  const passes::ChannelChoice choice = padded(sets, multiple);
  if (choice.empty()) return;
  passes::select_channels(qdq.graph, sets, choice);
  compact(qdq.graph, {});
  infer_types(qdq);
  verify(qdq);
}

}  // namespace quench
