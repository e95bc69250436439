// SPDX-License-Identifier: Apache-2.0
// What the flow in one call and the flow in steps have in common.
#include "pipeline/quantize_steps.h"

#include "base/format.h"

namespace quench {

void infer_and_warn(Model& model, const Context& context) {
  for (const std::string& note : infer_types(model)) context.warn(note);
}

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

void note_observers(const QuantPlan& plan, QuantizeReport& report) {
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) report.value_observers[name] = value.spec.observer;
  }
}

}  // namespace quench
