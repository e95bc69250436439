// SPDX-License-Identifier: Apache-2.0
// Values that only a hard-swish reads: x times HardSigmoid(x).
#include <algorithm>

#include "plan/planner.h"

namespace quench::plan {
namespace {

/// x has a scale of its own that no other value has to share.
bool owns_params(const QuantPlan& plan, const std::string& name) {
  const auto found = plan.values.find(name);
  if (found == plan.values.end() || found->second.kind != ValuePlan::Kind::Observed) return false;
  return std::ranges::none_of(plan.values, [&](const auto& each) {
    return each.second.kind == ValuePlan::Kind::SharedWith && each.second.source == name;
  });
}

bool multiplies(const Node& node, ValueId a, ValueId b) {
  return node.op_type == "Mul" && node.domain.empty() && node.inputs.size() == 2 &&
         ((node.inputs[0] == a && node.inputs[1] == b) ||
          (node.inputs[0] == b && node.inputs[1] == a));
}

/// Below -beta / alpha the gate is 0, and so is its product with x.
bool only_gated(const Job& job, NodeId gate) {
  const ValueId x = job.node(gate).inputs[0];
  const auto index = static_cast<std::size_t>(x);
  if (job.uses.is_output[index]) return false;
  return std::ranges::all_of(job.uses.consumers[index], [&](NodeId reader) {
    return reader == gate || multiplies(job.node(reader), x, job.node(gate).outputs[0]);
  });
}

}  // namespace

void note_hard_gates(const Job& job, QuantPlan& plan) {
  for (NodeId id = 0; id < static_cast<NodeId>(job.graph.nodes.size()); ++id) {
    const Node& node = job.node(id);
    if (node.op_type != "HardSigmoid" || !node.domain.empty() || !only_gated(job, id)) continue;
    const auto [alpha, beta] = hard_slope(node);
    const std::string& x = job.graph[node.inputs[0]].name;
    if (alpha > 0 && beta > 0 && owns_params(plan, x) && !plan.values.at(x).bounds) {
      plan.values.at(x).floor = -beta / alpha;
    }
  }
}

}  // namespace quench::plan
