// SPDX-License-Identifier: Apache-2.0
// The range whose scale changes mean and standard deviation least, as PaddleSlim's EMD does.
#include <algorithm>
#include <cmath>
#include <limits>

#include "observe/distribution.h"
#include "observe/observer.h"

namespace quench::observe {
namespace {

double deviation(double mean, double mean_square) {
  return std::sqrt(std::max(0.0, mean_square - mean * mean));
}

Range range(const Statistic& statistic, const QuantSpec& spec) {
  if (statistic.count == 0 || statistic.abs_max() == 0) return {};
  const Distribution distribution(statistic);
  const double mean = statistic.mean();
  const double spread = std::sqrt(statistic.variance());
  const Range whole = whole_range(statistic, spec);
  Range best = whole;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = 100; percent >= 30; percent -= 2) {
    const double factor = percent / 100.0;
    const Range tried{factor * whole.min, factor * whole.max};
    const auto after = distribution.moments(step_params(spec, tried));
    const double loss =
        std::fabs(mean - after.mean) + std::fabs(spread - deviation(after.mean, after.mean_square));
    if (loss < least) {
      least = loss;
      best = tried;
    }
  }
  return best;
}

}  // namespace

ObserverInfo emd() {
  return {"emd", "EMD", "the range whose scale changes mean and standard deviation least", range};
}

}  // namespace quench::observe
