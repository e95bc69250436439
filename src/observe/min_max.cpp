// SPDX-License-Identifier: Apache-2.0
// All that was seen.
#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  return whole_range(statistic, spec);
}

}  // namespace

ObserverInfo min_max() {
  return {"min_max", "MAX_MIN", "the smallest and the largest value seen", range};
}

}  // namespace quench::observe
