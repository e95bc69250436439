// SPDX-License-Identifier: Apache-2.0
// Looks up the scales that a plan asks for, one that is missing being our own mistake; and scales
// as tensors.
#pragma once

#include "quench/plan.h"

namespace quench::lower {

bool has_params(const QuantPlan& plan, const std::string& value);
/// Throws Error(Internal) when there is none.
const QuantParams& value_params(const QuantPlan& plan, const QuantSolution& solution,
                                const std::string& value);
const QuantParams& weight_params(const QuantSolution& solution, const WeightKey& weight);

/// Scales, and zero points in the type of the integers, as nodes hold them.
Tensor scale_tensor(const QuantParams& params);
Tensor zero_tensor(const QuantParams& params);

/// What rounding a weight costs.
double squared_error(const Tensor& weight, const QuantParams& params);

}  // namespace quench::lower
