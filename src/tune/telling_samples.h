// SPDX-License-Identifier: Apache-2.0
// The samples that tell most about a choice of ranges.
#pragma once

#include "tune/state.h"

namespace quench::tune {

/// Part of the validation set, and those of the calibration set in which values reach furthest:
/// clipping shows there.
std::vector<evaluation::SampleRange> telling_samples(const State& state);

}  // namespace quench::tune
