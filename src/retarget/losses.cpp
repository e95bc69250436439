// SPDX-License-Identifier: Apache-2.0
// What a retargeted model could not keep.
#include "retarget/losses.h"

#include <algorithm>
#include <cmath>

#include "retarget/params_of.h"
#include "retarget/solve.h"

namespace quench::retargeting {
namespace {

/// Less than that is rounding of the scale itself.
constexpr double kSameStep = 1e-6;
/// In steps: further from what it was, an element is another number.
constexpr double kSameNumber = 1e-3;

/// Of several scales that there were, one for each channel, the geometric mean is taken.
double wider(const QuantParams& now, const QuantParams& before) {
  double sum = 0;
  for (const float each : before.scale) sum += std::log(static_cast<double>(each));
  return static_cast<double>(now.scale[0]) /
         std::exp(sum / static_cast<double>(before.scale.size()));
}

/// Same steps, and room for every integer that there was.
bool keeps(const QuantParams& now, const QuantParams& before) {
  return before.spec.axis < 0 && std::abs(wider(now, before) - 1) < kSameStep;
}

double changed_share(const Tensor& weight, const QuantParams& params) {
  const std::vector<float> before = to_float(weight);
  const std::vector<float> after = to_float(fake_quantize(weight, params));
  const double step = static_cast<double>(std::ranges::min(params.scale));
  std::size_t changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double error = std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i]));
    if (error > kSameNumber * step) ++changed;
  }
  return before.empty() ? 0 : static_cast<double>(changed) / static_cast<double>(before.size());
}

double widest(const QuantParams& now, const QuantParams& before) {
  double most = 0;
  for (std::size_t i = 0; i < now.scale.size(); ++i) {
    const float old = before.scale[before.scale.size() == now.scale.size() ? i : 0];
    most = std::max(most, static_cast<double>(now.scale[i]) / static_cast<double>(old));
  }
  return most;
}

}  // namespace

void note_losses(const Model& prepared, const QuantPlan& plan, const QuantSolution& solution,
                 const Raised& raised, RetargetReport& report) {
  for (const auto& [name, params] : solution.values) {
    const auto before = raised.values.find(name);
    if (before == raised.values.end()) continue;
    if (keeps(params, before->second)) {
      ++report.kept_scales;
      continue;
    }
    const double step = wider(params, before->second);
    ++(step > 1 ? report.wider_scales : report.finer_scales);
    if (step > 1) report.losses.push_back({.name = name, .step = step});
  }
  for (const WeightPlan& planned : plan.weights) {
    const Node& node = node_called(prepared.graph, planned.node);
    const ValueId value = node.inputs[planned.input];
    const QuantParams& params = solution.weights.at(planned.key());
    const auto before = weight_params(prepared, node, planned.input, raised);
    if (!before) continue;  // it was a float
    const double changed = changed_share(*prepared.graph.constant(value), params);
    if (changed == 0) {
      ++report.kept_weights;
      continue;
    }
    ++report.changed_weights;
    report.losses.push_back({.name = prepared.graph[value].name,
                             .weight = true,
                             .step = widest(params, *before),
                             .changed = changed});
  }
  std::ranges::stable_sort(report.losses, std::greater{}, &RetargetLoss::step);
}

}  // namespace quench::retargeting
