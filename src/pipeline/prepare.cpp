// SPDX-License-Identifier: Apache-2.0
// The graph as plans, statistics and the written file see it: one graph for all of them.
#include <array>

#include "passes/run.h"
#include "pipeline/quantize_steps.h"

namespace quench {
namespace {

/// The least that every target needs: DequantizeLinear with an axis.
constexpr std::int64_t kLeastOpset = 13;

}  // namespace

Model prepare_for_quantization(Model model) {
  constexpr std::array<std::string_view, 3> kTidy = {"inline_functions", "lift_constants",
                                                     "remove_identity"};
  constexpr std::array<std::string_view, 1> kFold = {"fold_batchnorm"};
  infer_types(model);
  passes::run(model, kTidy, {});
  // Before anything is planned: nodes that lifting adds must be part of the plan.
  lift_opset(model, kLeastOpset);
  infer_types(model);
  passes::run(model, kFold, {});
  infer_types(model);
  return model;
}

QuantPlan make_final_plan(Model& model, const QuantConfig& config) {
  QuantPlan plan = make_plan(model, config);
  if (needed_opset(plan) <= model.opset()) return plan;
  lift_opset(model, needed_opset(plan));
  infer_types(model);
  return make_plan(model, config);
}

}  // namespace quench
