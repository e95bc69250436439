// SPDX-License-Identifier: Apache-2.0
// What the flow in one call and the flow in steps have in common.
#include "pipeline/quantize_steps.h"

#include "base/format.h"

namespace quench {

std::vector<std::string> observed_values(const QuantPlan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) names.push_back(name);
  }
  return names;
}

void note_decisions(const Model& model, const QuantPlan& plan, QuantizeReport& report) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const NodePlan& decision = plan.nodes[i];
    if (decision.kind == NodePlan::Kind::Integer) ++report.integer_nodes;
    if (decision.kind == NodePlan::Kind::PassThrough) ++report.pass_through_nodes;
    if (decision.kind != NodePlan::Kind::Float) continue;
    const Node& node = model.graph.nodes[i];
    report.float_layers.push_back(
        {.node = label(model.graph, node), .op_type = node.op_type, .reason = decision.reason});
  }
}

void warn_of_values(const StatisticMap& statistics, QuantizeReport& report) {
  for (const auto& [name, statistic] : statistics) {
    if (statistic.nans + statistic.infinities > 0) {
      report.warnings.push_back(
          format("'{}' held {} NaN and {} infinite values during calibration; they were left out",
                 name, statistic.nans, statistic.infinities));
    }
    if (statistic.count > 0 && statistic.min == statistic.max) {
      report.warnings.push_back(format(
          "'{}' was {} everywhere during calibration; are the data right?", name, statistic.min));
    }
  }
}

}  // namespace quench
