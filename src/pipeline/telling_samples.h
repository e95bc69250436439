// SPDX-License-Identifier: Apache-2.0
// Which samples show what the ranges of activations cost.
#pragma once

#include "pipeline/quantize_job.h"

namespace quench {

/// About 16 samples: most of those held out, and those of calibration in which the most values
/// reach furthest. What clipping costs shows only where there is something to clip, and a few
/// samples taken at random may hold none of what a detector looks for.
std::vector<SampleRange> telling_samples(const Job& job);

}  // namespace quench
