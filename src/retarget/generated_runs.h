// SPDX-License-Identifier: Apache-2.0
// Something to hold a retargeted model against the original with, where there are no samples.
#pragma once

#include "quench/retarget.h"
#include "retarget/raise.h"

namespace quench::retargeting {

/// Runs of random numbers in the ranges of the inputs' scales, noted in the report; none, and a
/// warning there, where `reference` does not say of what shape.
std::vector<TensorMap> generated_runs(const Model& reference, const Raised& raised,
                                      const RetargetOptions& options, std::uint64_t seed,
                                      RetargetReport& report);

}  // namespace quench::retargeting
