// SPDX-License-Identifier: Apache-2.0
// Steps that `quantize`, `PTQ` and `quant_post_static` share.
#pragma once

#include "quench/quantize.h"

namespace quench {

/// Infers types, and warns of shapes that the file declares otherwise.
void infer_and_warn(Model& model, const Context& context);
/// The plan of a prepared model, which is lifted to the operator version that the plan needs.
QuantPlan make_final_plan(Model& model, const QuantConfig& config);
/// The values whose grids come from statistics.
std::vector<std::string> observed_values(const QuantPlan& plan);
/// Counts what the plan decided, and lists what stays in float.
void note_decisions(const Model& model, const QuantPlan& plan, QuantizeReport& report);
/// Tells which observer each of those values has.
void note_observers(const QuantPlan& plan, QuantizeReport& report);

}  // namespace quench
