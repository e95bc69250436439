// SPDX-License-Identifier: Apache-2.0
// Steps that `quantize`, `PTQ` and `quant_post_static` share.
#pragma once

#include "quench/quantize.h"

namespace quench {

/// The values whose grids come from statistics.
std::vector<std::string> observed_values(const QuantPlan& plan);
/// Counts what the plan decided, and lists what stays in float.
void note_decisions(const Model& model, const QuantPlan& plan, QuantizeReport& report);

}  // namespace quench
