// SPDX-License-Identifier: Apache-2.0
// Power-of-two factors: all that was seen, or a half, a quarter or an eighth of it.
#include "observe/distribution.h"
#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  if (statistic.count == 0) return {};
  const Distribution distribution(statistic);
  const Range whole = whole_range(statistic, spec);
  Range best = whole;
  double least = distribution.mean_squared_error(step_params(spec, whole));
  for (const double factor : {0.5, 0.25, 0.125}) {
    const Range drawn_in{factor * whole.min, factor * whole.max};
    const double error = distribution.mean_squared_error(step_params(spec, drawn_in));
    if (!(error < least)) continue;
    least = error;
    best = drawn_in;
  }
  return best;
}

}  // namespace

ObserverInfo ptf() {
  return {"ptf", "power_of_two",
          "the largest magnitude, or it divided by 2, 4 or 8, by least error", range};
}

}  // namespace quench::observe
