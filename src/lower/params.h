// SPDX-License-Identifier: Apache-2.0
// Looks up the scales that a plan asks for; one that is missing is our own mistake.
#pragma once

#include "quench/plan.h"

namespace quench::lower {

bool has_params(const QuantPlan& plan, const std::string& value);
/// Throws Error(Internal) when there is none.
const QuantParams& value_params(const QuantPlan& plan, const QuantSolution& solution,
                                const std::string& value);
const QuantParams& weight_params(const QuantSolution& solution, const WeightKey& weight);

}  // namespace quench::lower
