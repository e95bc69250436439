// SPDX-License-Identifier: Apache-2.0
// The histogram of magnitudes.
#include "observe/folded.h"

#include <algorithm>

namespace quench::observe {

std::vector<double> folded(const Statistic& statistic) {
  const auto magnitude = [](std::int64_t bin) { return bin >= 0 ? bin : -bin - 1; };
  const std::int64_t last =
      statistic.first_bin + static_cast<std::int64_t>(statistic.bins.size()) - 1;
  const std::int64_t most = std::max(magnitude(statistic.first_bin), magnitude(last));
  std::vector<double> bins(static_cast<std::size_t>(most + 1));
  for (std::size_t i = 0; i < statistic.bins.size(); ++i) {
    const std::int64_t bin = magnitude(statistic.first_bin + static_cast<std::int64_t>(i));
    bins[static_cast<std::size_t>(bin)] += static_cast<double>(statistic.bins[i]);
  }
  return bins;
}

}  // namespace quench::observe
