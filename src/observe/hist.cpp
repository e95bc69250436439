// SPDX-License-Identifier: Apache-2.0
// Percentiles: the tails beyond `hist_percent` of the values are clipped.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "observe/bins.h"
#include "observe/folded.h"
#include "observe/observer.h"

namespace quench::observe {
namespace {

/// Where `wanted` of the values lie below, by straight lines inside the bins.
double value_at(double first_edge, double width, const std::vector<double>& bins, double wanted) {
  double below = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] > 0 && below + bins[i] >= wanted) {
      const double inside = std::clamp((wanted - below) / bins[i], 0.0, 1.0);
      return first_edge + (static_cast<double>(i) + inside) * width;
    }
    below += bins[i];
  }
  return first_edge + static_cast<double>(bins.size()) * width;
}

Range range(const Statistic& given, const QuantSpec& spec) {
  if (!(spec.hist_percent > 0.5 && spec.hist_percent <= 1)) {
    fail(ErrorKind::Usage, "hist_percent is above 0.5 and at most 1 (such as 0.9999), not {}",
         spec.hist_percent);
  }
  if (given.count == 0) return {};
  const Statistic statistic = with_fewer_bins(given, spec.bins);
  const auto count = static_cast<double>(statistic.count);
  if (spec.symmetric) {
    const double threshold =
        value_at(0, statistic.bin_width, folded(statistic), spec.hist_percent * count);
    return clip_at(statistic, spec, std::min(threshold, statistic.abs_max()));
  }
  const std::vector<double> bins(statistic.bins.begin(), statistic.bins.end());
  const double edge = static_cast<double>(statistic.first_bin) * statistic.bin_width;
  const double low = value_at(edge, statistic.bin_width, bins, (1 - spec.hist_percent) * count);
  const double high = value_at(edge, statistic.bin_width, bins, spec.hist_percent * count);
  return {std::min(0.0, std::max(low, statistic.min)),
          std::max(0.0, std::min(high, statistic.max))};
}

}  // namespace

ObserverInfo hist() {
  return {"hist", "percentile", "quantiles: clips the tails beyond hist_percent", range};
}

}  // namespace quench::observe
