// SPDX-License-Identifier: Apache-2.0
// Looks up the grids that a plan asks for; one that is missing is our own mistake.
#pragma once

#include "quench/plan.h"

namespace quench::lower {

bool has_grid(const QuantPlan& plan, const std::string& value);
/// Throws Error(Internal) when there is none.
const QuantParams& value_grid(const QuantPlan& plan, const QuantSolution& solution,
                              const std::string& value);
const QuantParams& weight_grid(const QuantSolution& solution, const WeightKey& weight);

}  // namespace quench::lower
