// SPDX-License-Identifier: Apache-2.0
// The largest magnitude seen, on both sides of zero.
#include "observe/observer.h"

namespace quench::observe {
namespace {

Range range(const Statistic& statistic, const QuantSpec& spec) {
  return clip_at(statistic, spec, statistic.abs_max());
}

}  // namespace

ObserverInfo abs_max() { return {"abs_max", "absmax", "the largest magnitude seen", range}; }

}  // namespace quench::observe
