// SPDX-License-Identifier: Apache-2.0
// Histograms whose width follows from their range alone.
#pragma once

#include <cstdint>
#include <span>

#include "quant/bin_range.h"
#include "quench/statistics.h"

namespace quench::observe {

using quant::bin_range;
using quant::BinRange;

/// Makes the statistic's bins fit its min and max; counts move to wider bins exactly.
void fit_bins(Statistic& statistic);
/// Adds counts of narrower or equal bins to bins that cover them.
void add_bins(Statistic& statistic, double width, std::int64_t first,
              std::span<const std::int64_t> counts);

/// A copy whose bins are merged in pairs for as long as at least `wanted` are left.
Statistic with_fewer_bins(const Statistic& statistic, std::int64_t wanted);

}  // namespace quench::observe
