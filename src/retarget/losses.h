// SPDX-License-Identifier: Apache-2.0
// What a retargeted model could not keep.
#pragma once

#include "quench/plan.h"
#include "quench/retarget.h"
#include "retarget/raise.h"

namespace quench::retargeting {

/// Holds the scales that are written against those that were there, into the report: what was
/// kept, and what was not.
void note_losses(const Model& prepared, const QuantPlan& plan, const QuantSolution& solution,
                 const Raised& raised, RetargetReport& report);

}  // namespace quench::retargeting
