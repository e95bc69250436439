// SPDX-License-Identifier: Apache-2.0
// `auto`: whichever other observer makes the least error.
#include <limits>

#include "observe/distribution.h"
#include "observe/observer.h"

namespace quench {
namespace observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  return best_observer(statistic, statistic, spec).range;
}

}  // namespace

ObserverInfo best() {
  return {"auto", "best", "for each tensor the observer whose scale makes the least error", range};
}

}  // namespace observe

ObserverChoice best_observer(const Statistic& seen, const Statistic& held_out,
                             const QuantSpec& spec) {
  const observe::Distribution unseen(held_out.count > 0 ? held_out : seen);
  ObserverChoice choice{"min_max", {}, std::numeric_limits<double>::infinity()};
  for (const auto& info : all_observers()) {
    if (info.name == "auto") continue;
    const Range range = info.range(seen, spec);
    const double error = unseen.mean_squared_error(observe::step_params(spec, range));
    if (error < choice.error) choice = {info.name, range, error};
  }
  return choice;
}

}  // namespace quench
