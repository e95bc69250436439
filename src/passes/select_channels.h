// SPDX-License-Identifier: Apache-2.0
// Gives sets of values other channels than they have.
#pragma once

#include <map>

#include "passes/channel_sets.h"

namespace quench::passes {

/// Stands for a channel of zeros.
inline constexpr std::int64_t kNewChannel = -1;

/// By set, which channels there are from now on: numbers of old ones, or kNewChannel.
using ChannelChoice = std::map<ValueId, std::vector<std::int64_t>>;

/// Changes constants, groups and types of all that the sets touch. The sets must be free.
void select_channels(Graph& graph, const ChannelSets& sets, const ChannelChoice& choice);

}  // namespace quench::passes
