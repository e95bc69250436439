// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's moving average of each sample's largest magnitude, started from nothing.
#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  return clip_at(statistic, spec, statistic.moving_abs_max.value());
}

}  // namespace

ObserverInfo moving_average_abs_max() {
  return {"moving_average_abs_max", "moving_average",
          "a moving average, factor 0.9, of each sample's largest magnitude", range};
}

}  // namespace quench::observe
