// SPDX-License-Identifier: Apache-2.0
// From statistics to grids.
#include <algorithm>

#include "base/format.h"
#include "calibrate/collect.h"

namespace quench::calibrate {
namespace {

QuantParams solve_value(const std::string& name, const ValuePlan& plan,
                        const StatisticMap& statistics) {
  if (plan.kind == ValuePlan::Kind::Fixed) return choose_params(plan.spec, {plan.fixed});
  const auto found = statistics.find(name);
  if (found == statistics.end()) {
    fail(ErrorKind::BadData, "there are no statistics of '{}'; calibrate this model again", name);
  }
  const Range range = find_observer(plan.spec.observer).range(found->second, plan.spec);
  return choose_params(plan.spec, {range});
}

}  // namespace

QuantSolution solve(const Model& model, const QuantPlan& plan, const StatisticMap& statistics) {
  QuantSolution solution;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed || value.kind == ValuePlan::Kind::Fixed) {
      solution.values[name] = solve_value(name, value, statistics);
    }
  }
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::SharedWith) continue;
    // Chains are short: each link leads to a value nearer to the one that was observed.
    const ValuePlan* link = &value;
    std::string source = value.source;
    for (std::size_t hops = 0; hops <= plan.values.size(); ++hops) {
      const auto next = plan.values.find(source);
      if (next == plan.values.end() || next->second.kind != ValuePlan::Kind::SharedWith) break;
      link = &next->second;
      source = link->source;
    }
    const auto found = solution.values.find(source);
    if (found == solution.values.end()) {
      fail(ErrorKind::Internal, "'{}' shares the grid of '{}', which has none", name, source);
    }
    solution.values[name] = found->second;
  }
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = model.graph.nodes[static_cast<std::size_t>(weight.node)];
    const Tensor* tensor = model.graph.constant(node.input(weight.input));
    if (tensor == nullptr) {
      fail(ErrorKind::Internal, "input {} of the {} is not a constant", weight.input,
           label(model.graph, node));
    }
    solution.weights[{weight.node, weight.input}] =
        choose_params(weight.spec, weight_ranges(*tensor, weight.spec));
  }
  return solution;
}

}  // namespace quench::calibrate
