// SPDX-License-Identifier: Apache-2.0
// What the observers share.
#pragma once

#include "quench/statistics.h"

namespace quench::observe {

#define QUENCH_OBSERVER(name) ObserverInfo name();
#include "observe/observers.inc"
#undef QUENCH_OBSERVER

/// Values clipped at +-threshold. A scale that need not be symmetric gives no steps to values that
/// never occur.
Range clip_at(const Statistic& statistic, const QuantSpec& spec, double threshold);
/// All that was seen.
Range whole_range(const Statistic& statistic, const QuantSpec& spec);
/// Whether the scale has an end on each side of zero that can be chosen on its own.
bool has_two_ends(const Statistic& statistic, const QuantSpec& spec);

}  // namespace quench::observe
