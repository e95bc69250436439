// SPDX-License-Identifier: Apache-2.0
// The graph as plans, statistics and the written file see it: one graph for all of them.
#include <array>

#include "passes/run.h"
#include "pipeline/quantize_steps.h"

namespace quench {
namespace {

/// The least that every target needs: DequantizeLinear with an axis.
constexpr std::int64_t kLeastOpset = 13;
constexpr std::int64_t kHardSwishOpset = 14;

/// HardSwish that is written out as one node: runtimes then read it from integers once.
Model with_hard_gates(Model model) {
  constexpr std::array<std::string_view, 1> kJoin = {"join_hard_gates"};
  Model lifted = model;
  lift_opset(lifted, kHardSwishOpset);
  return passes::run(lifted, kJoin, {}).changes > 0 ? lifted : model;
}

}  // namespace

Model prepare_for_quantization(Model model) {
  constexpr std::array<std::string_view, 4> kTidy = {"inline_functions", "lift_constants",
                                                     "remove_identity", "fold_casts"};
  constexpr std::array<std::string_view, 1> kFold = {"fold_batchnorm"};
  constexpr std::array<std::string_view, 1> kFinish = {"matmul_to_gemm"};
  infer_types(model);
  passes::run(model, kTidy, {});
  // Before anything is planned: nodes that lifting adds must be part of the plan.
  lift_opset(model, kLeastOpset);
  infer_types(model);
  passes::run(model, kFold, {});
  model = with_hard_gates(std::move(model));  // before their last factor is folded
  passes::run(model, kFinish, {});
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
