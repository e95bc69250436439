// SPDX-License-Identifier: Apache-2.0
// The decision for every node and value of a graph.
#include "plan/config.h"
#include "plan/planner.h"

namespace quench {
namespace plan {

Job::Job(const Model& the_model, const QuantConfig& the_config)
    : model(the_model),
      graph(the_model.graph),
      config(the_config),
      target(find_target(the_config.target)),
      uses(the_model.graph),
      parallel(the_model.graph) {}

QuantRule Job::rule(const Node& node) const {
  return config.rule_for(key_of(graph, node), node.op_type);
}

bool leaves_weight(const QuantRule& rule) { return rule.weight_observer == "none"; }

}  // namespace plan

QuantPlan make_plan(const Model& model, const QuantConfig& given) {
  const QuantConfig config = plan::by_operators(model.graph, given);
  const plan::Job job(model, config);
  plan::check_names(job.graph, config);
  plan::check_settings(config);
  QuantPlan result{.target = config.target,
                   .isa = config.isa,
                   .integer_clip = job.target.integer_clip,
                   .round_for_layers_only = config.round_for_layers_only};
  std::vector<NodePlan> nodes = plan::classify(job);
  plan::choose(job, nodes);
  plan::place_specs(job, nodes, result);
  plan::note_hard_gates(job, result);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    result.nodes.emplace(output_name(job.graph, job.graph.nodes[i]), std::move(nodes[i]));
  }
  return result;
}

}  // namespace quench
