// SPDX-License-Identifier: Apache-2.0
// The mean over samples of each sample's largest magnitude.
#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  if (statistic.observed == 0) return {};
  return clip_at(statistic, spec,
                 statistic.sum_abs_max.value() / static_cast<double>(statistic.observed));
}

}  // namespace

ObserverInfo avg() {
  return {"avg", "average", "the mean over samples of each sample's largest magnitude", range};
}

}  // namespace quench::observe
