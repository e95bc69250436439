// SPDX-License-Identifier: Apache-2.0
// Scales on which a HardSigmoid is a Clip of integers.
#include "lower/hard_gate.h"

#include <algorithm>
#include <cmath>

#include "plan/facts.h"

namespace quench::lower {
namespace {

using plan::hard_slope;
using plan::HardSlope;

constexpr double kMostGrowth = 1.25;
/// Far above what rounding a scale to float moves a step count by, far below a step.
constexpr double kHair = 1e-3;

bool is_byte(const QuantParams& params) {
  return params.scale.size() == 1 && params.spec.bits == 8 && !params.spec.symmetric &&
         !params.spec.narrow;
}

bool is_whole(double value) { return std::abs(value - std::nearbyint(value)) < kHair; }

void tie(const HardSlope& slope, QuantParams& x, QuantParams& gate) {
  const double foot = slope.beta / slope.alpha;
  const std::int64_t low = x.spec.q_min();
  const auto levels = static_cast<double>(x.spec.q_max() - low);
  const auto old_scale = static_cast<double>(x.scale[0]);
  const double top = old_scale * static_cast<double>(x.spec.q_max() - x.zero_point[0]);
  const double zero = std::floor(levels * foot / (foot + std::max(top, 0.0)) + kHair);
  if (zero < 1 || foot / zero > kMostGrowth * old_scale) return;
  x.scale[0] = static_cast<float>(foot / zero);
  x.zero_point[0] = static_cast<std::int32_t>(low + static_cast<std::int64_t>(zero));
  gate.scale[0] = static_cast<float>(slope.alpha * static_cast<double>(x.scale[0]));
  gate.zero_point[0] = static_cast<std::int32_t>(low);
}

}  // namespace

void tie_hard_gates(const Graph& graph, const QuantPlan& plan, QuantSolution& solution) {
  for (const Node& node : graph.nodes) {
    if (node.op_type != "HardSigmoid") continue;
    const auto planned = plan.values.find(graph[node.inputs[0]].name);
    if (planned == plan.values.end() || !planned->second.floor) continue;
    const auto gate_plan = plan.values.find(graph[node.outputs[0]].name);
    if (gate_plan == plan.values.end() || gate_plan->second.kind != ValuePlan::Kind::Observed) {
      continue;
    }
    const auto x = solution.values.find(planned->first);
    const auto gate = solution.values.find(gate_plan->first);
    if (x == solution.values.end() || gate == solution.values.end()) continue;
    const bool alike = x->second.spec.dtype() == gate->second.spec.dtype();
    if (alike && is_byte(x->second) && is_byte(gate->second) &&
        is_whole(1 / hard_slope(node).beta)) {
      tie(hard_slope(node), x->second, gate->second);
    }
  }
}

std::optional<std::int64_t> clip_of_gate(const Node& node, const QuantParams& x,
                                         const QuantParams& gate) {
  if (node.op_type != "HardSigmoid" || !node.domain.empty() || !is_byte(x) || !is_byte(gate) ||
      x.spec.dtype() != gate.spec.dtype()) {
    return std::nullopt;
  }
  const HardSlope slope = hard_slope(node);
  const std::int64_t low = x.spec.q_min();
  const auto zero = static_cast<double>(x.zero_point[0] - low);
  const auto scale = static_cast<double>(x.scale[0]);
  const double open = 1 / (slope.alpha * scale);
  const bool tied = gate.zero_point[0] == low &&
                    gate.scale[0] == static_cast<float>(slope.alpha * scale) &&
                    std::abs(zero - slope.beta / slope.alpha / scale) < kHair && is_whole(open);
  if (!tied) return std::nullopt;
  return std::min(low + static_cast<std::int64_t>(std::nearbyint(open)), x.spec.q_max());
}

}  // namespace quench::lower
