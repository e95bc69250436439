// SPDX-License-Identifier: Apache-2.0
// MindSpore Lite's REMOVAL_OUTLIER: each sample without its extremes, averaged.
#include <algorithm>
#include <cmath>

#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  if (statistic.observed == 0) return {};
  const auto samples = static_cast<double>(statistic.observed);
  const Range trimmed{statistic.sum_low.value() / samples, statistic.sum_high.value() / samples};
  if (!spec.symmetric) return trimmed;
  return clip_at(statistic, spec, std::max(std::fabs(trimmed.min), std::fabs(trimmed.max)));
}

}  // namespace

ObserverInfo removal_outlier() {
  return {"removal_outlier", "outlier", "the 0.01 % and 99.99 % quantiles of each sample, averaged",
          range};
}

}  // namespace quench::observe
