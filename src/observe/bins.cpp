// SPDX-License-Identifier: Apache-2.0
// Counts that move between bins of different widths.
#include "observe/bins.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quench::observe {

void fit_bins(Statistic& statistic) {
  const BinRange range = bin_range(statistic.min, statistic.max);
  if (range.width == statistic.bin_width && range.first == statistic.first_bin &&
      range.count == static_cast<std::int64_t>(statistic.bins.size())) {
    return;
  }
  const double old_width = std::exchange(statistic.bin_width, range.width);
  const std::int64_t old_first = std::exchange(statistic.first_bin, range.first);
  const std::vector<std::int64_t> old = std::exchange(
      statistic.bins, std::vector<std::int64_t>(static_cast<std::size_t>(range.count)));
  if (!old.empty()) add_bins(statistic, old_width, old_first, old);
}

void add_bins(Statistic& statistic, double width, std::int64_t first,
              std::span<const std::int64_t> counts) {
  const int shift = std::min(std::ilogb(statistic.bin_width) - std::ilogb(width), 62);
  const std::int64_t run = std::int64_t{1} << shift;
  const auto end = first + static_cast<std::int64_t>(counts.size());
  // An arithmetic shift divides and rounds down, which is what bins aligned at zero need.
  for (std::int64_t bin = first; bin < end;) {
    const std::int64_t wide = bin >> shift;
    const std::int64_t last = std::min(end, (wide + 1) * run);
    std::int64_t sum = 0;
    for (; bin < last; ++bin) sum += counts[static_cast<std::size_t>(bin - first)];
    statistic.bins[static_cast<std::size_t>(wide - statistic.first_bin)] += sum;
  }
}

Statistic with_fewer_bins(const Statistic& statistic, std::int64_t wanted) {
  Statistic result = statistic;
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(wanted, 1));
  while (result.bins.size() / 2 >= least) {
    const std::int64_t last = result.first_bin + static_cast<std::int64_t>(result.bins.size()) - 1;
    const std::vector<std::int64_t> old = std::exchange(result.bins, {});
    const std::int64_t first = std::exchange(result.first_bin, result.first_bin >> 1);
    result.bins.resize(static_cast<std::size_t>((last >> 1) - result.first_bin + 1));
    result.bin_width *= 2;
    add_bins(result, result.bin_width / 2, first, old);
  }
  return result;
}

}  // namespace quench::observe
