// SPDX-License-Identifier: Apache-2.0
// Where no rule names an observer of activations, held-out samples choose between two.
#include <algorithm>

#include "calibrate/collect.h"
#include "pipeline/tuning.h"

namespace quench {
namespace {

/// The least error value by value is not always the least error in the outputs: behind a bounded
/// activation it keeps peaks that hardly matter (MobileNetV2: 2 dB). The mean of the samples'
/// ranges cuts them.
constexpr const char* kOther = "avg";
/// Held-out samples are few: a difference in dB below this is noise.
constexpr double kWorth = 0.25;

bool names_observer(const QuantConfig& config) {
  const auto named = [](const auto& entry) { return entry.second.activation_observer.has_value(); };
  return config.global.activation_observer.has_value() ||
         std::ranges::any_of(config.by_layer, named) ||
         std::ranges::any_of(config.by_name, named) || std::ranges::any_of(config.by_type, named);
}

}  // namespace

void choose_observer(Job& job, const Judge& judge, const QuantizeOptions& options,
                     const Context& context, QuantizeReport& report) {
  const QuantConfig& config = options.config;
  if (names_observer(config)) return;
  report.activation_observer = config.default_activation_observer;
  // Statistics from a file are often taken to try observers by hand: those are given to the letter.
  if (!judge.able() || !options.statistics.empty()) return;
  QuantPlan plan = job.plan;
  for (auto& [name, value] : plan.values) value.spec.observer = kOther;
  QuantSolution solution = calibrate::solve(job.model, plan, job.statistics,
                                            config.custom_observers, context.num_threads());
  std::vector<CoarserLayer> coarser = settle(job.model, plan, solution);
  const double own = judge.sqnr(insert_qdq(job.model, job.plan, job.solution));
  if (judge.sqnr(insert_qdq(job.model, plan, solution)) < own + kWorth) return;
  job.plan = std::move(plan);
  job.solution = std::move(solution);
  report.coarser_layers = std::move(coarser);
  report.activation_observer = kOther;
}

}  // namespace quench
