// SPDX-License-Identifier: Apache-2.0
// The samples that tell most about a choice of ranges.
#pragma once

#include "tune/state.h"

namespace quench::tune {

/// About `count` samples: most of the validation set, and those of the calibration set in which the
/// most values reach furthest. What clipping costs shows only where there is something to clip, and
/// a few samples taken at random may hold none of what a detector looks for.
std::vector<evaluation::SampleRange> telling_samples(const State& state, std::int64_t count);

}  // namespace quench::tune
