// SPDX-License-Identifier: Apache-2.0
// Makes a plan in three steps: what each node could be, which of them gain by it, which values and
// constants need scales for that.
#pragma once

#include "passes/parallel_layers.h"
#include "plan/facts.h"
#include "plan/target.h"

namespace quench::plan {

/// One graph and everything that is asked of it.
struct Job {
  Job(const Model& the_model, const QuantConfig& the_config);

  const Model& model;
  const Graph& graph;
  const QuantConfig& config;
  const TargetInfo& target;
  Uses uses;
  passes::ParallelLayers parallel;

  const Node& node(NodeId id) const { return graph.nodes[static_cast<std::size_t>(id)]; }
  const std::string& name(NodeId id) const { return output_name(graph, node(id)); }
  NodeId producer(ValueId id) const { return uses.producer[static_cast<std::size_t>(id)]; }
  QuantRule rule(const Node& node) const;
};

/// Whether a layer's weight and bias stay as they are between quantised activations.
bool leaves_weight(const QuantRule& rule);

/// What each node could be, seen alone: by the target's table, the configuration, types and
/// constants. In the order of the graph, which does not change while a plan is made.
std::vector<NodePlan> classify(const Job& job);

/// Notes activations that run inside the integer node before them, then returns to float, with the
/// reason, what would gain nothing on integers.
void choose(const Job& job, std::vector<NodePlan>& nodes);

/// Specs for what the integer nodes read and make.
void place_specs(const Job& job, std::vector<NodePlan>& nodes, QuantPlan& plan);

/// Finds values of which only a HardSigmoid and its Mul take note.
void note_hard_gates(const Job& job, QuantPlan& plan);

}  // namespace quench::plan
