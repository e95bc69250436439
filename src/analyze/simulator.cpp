// SPDX-License-Identifier: Apache-2.0
// Any choice of quantised layers from one set of statistics.
#include "analyze/simulator.h"

#include <algorithm>

#include "base/format.h"
#include "calibrate/collect.h"
#include "plan/facts.h"

namespace quench::analyze {
namespace {

/// What a layer makes: its output, or that of the activation that it absorbs.
std::string output_of(const Graph& graph, const QuantPlan& plan, NodeId node) {
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].absorbed_by == node) return graph[graph.nodes[i].outputs.at(0)].name;
  }
  return graph[graph.nodes[static_cast<std::size_t>(node)].outputs.at(0)].name;
}

std::vector<Layer> find_layers(const Graph& graph, const QuantPlan& plan) {
  std::vector<Layer> layers;
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = graph.nodes[static_cast<std::size_t>(weight.node)];
    if (!plan::is_layer(node) || weight.input != 1) continue;
    layers.push_back({.name = plan::key_of(graph, node),
                      .op_type = node.op_type,
                      .weight = graph[node.inputs[weight.input]].name,
                      .output = output_of(graph, plan, weight.node),
                      .node = weight.node});
  }
  std::ranges::sort(layers, {}, &Layer::node);
  return layers;
}

}  // namespace

Simulator::Simulator(Model model, QuantConfig config, int threads)
    : model_(std::move(model)),
      config_(std::move(config)),
      threads_(threads),
      plan_(make_plan(model_, config_)) {
  calibrate::check_observers(plan_, config_.custom_observers);
  layers_ = find_layers(model_.graph, plan_);
  if (layers_.empty()) {
    fail(ErrorKind::Unsupported, "the model has no layer that can be quantised for target '{}'",
         config_.target);
  }
}

std::vector<std::string> Simulator::wanted_statistics() const {
  std::set<std::string> names;
  const auto add = [&](const QuantPlan& plan) {
    for (const auto& [name, value] : plan.values) {
      if (value.kind != ValuePlan::Kind::Float) names.insert(name);
    }
  };
  add(plan_);
  for (const Layer& layer : layers_) add(plan_of(only(layer.name)));
  return {names.begin(), names.end()};
}

Choice Simulator::only(const std::string& name) const {
  Choice choice;
  for (const Layer& layer : layers_) {
    if (layer.name != name) choice.in_float.insert(layer.name);
  }
  return choice;
}

QuantConfig Simulator::config_of(const Choice& choice) const {
  QuantConfig config = config_;
  config.skip_quant_node.insert(config.skip_quant_node.end(), choice.in_float.begin(),
                                choice.in_float.end());
  for (const auto& [layer, bits] : choice.weight_bits) config.by_layer[layer].weight_bits = bits;
  return config;
}

QuantPlan Simulator::plan_of(const Choice& choice) const {
  return make_plan(model_, config_of(choice));
}

const QuantParams& Simulator::value_grid(const std::string& name, const ValuePlan& plan) {
  std::vector<ValueGrid>& known = values_[name];
  // What lies around a value decides whether its range is known or observed.
  const bool fixed = plan.kind == ValuePlan::Kind::Fixed;
  for (const ValueGrid& each : known) {
    if (each.spec == plan.spec && each.fixed == fixed) return each.params;
  }
  QuantPlan one;
  one.values[name] = plan;
  const QuantSolution found =
      calibrate::solve(model_, one, statistics_, config_.custom_observers, threads_);
  known.push_back({.spec = plan.spec, .fixed = fixed, .params = found.values.at(name)});
  return known.back().params;
}

const QuantParams& Simulator::weight_grid(const WeightPlan& plan) {
  std::vector<ValueGrid>& known = weights_[{plan.node, plan.input}];
  for (const ValueGrid& each : known) {
    if (each.spec == plan.spec) return each.params;
  }
  QuantPlan one;
  one.weights.push_back(plan);
  const QuantSolution found =
      calibrate::solve(model_, one, statistics_, config_.custom_observers, threads_);
  known.push_back({.spec = plan.spec, .params = found.weights.at({plan.node, plan.input})});
  return known.back().params;
}

QuantSolution Simulator::solve(const QuantPlan& plan) {
  QuantSolution solution;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed || value.kind == ValuePlan::Kind::Fixed) {
      solution.values[name] = value_grid(name, value);
    }
  }
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::SharedWith) continue;
    std::string source = value.source;
    for (std::size_t hops = 0; hops < plan.values.size(); ++hops) {
      const ValuePlan& next = plan.values.at(source);
      if (next.kind != ValuePlan::Kind::SharedWith) break;
      source = next.source;
    }
    solution.values[name] = solution.values.at(source);
  }
  for (const WeightPlan& weight : plan.weights) {
    solution.weights[{weight.node, weight.input}] = weight_grid(weight);
  }
  return solution;
}

Model Simulator::quantized(const Choice& choice) {
  const QuantPlan plan = plan_of(choice);
  return insert_qdq(model_, plan, solve(plan));
}

std::string seen_as(const Graph& quantized, const std::string& value) {
  const Uses uses(quantized);
  const auto reader = [&](ValueId id, std::string_view op) -> const Node* {
    for (const NodeId each : uses.consumers[static_cast<std::size_t>(id)]) {
      const Node& node = quantized.nodes[static_cast<std::size_t>(each)];
      if (node.op_type == op && node.inputs[0] == id) return &node;
    }
    return nullptr;
  };
  const ValueId id = quantized.find(value);
  if (id == kNoValue) return value;
  const Node* quantize = reader(id, "QuantizeLinear");
  if (const Node* clip = reader(id, "Clip"); quantize == nullptr && clip != nullptr) {
    quantize = reader(clip->outputs[0], "QuantizeLinear");
  }
  if (quantize == nullptr) return value;
  const Node* back = reader(quantize->outputs[0], "DequantizeLinear");
  return back == nullptr ? value : quantized[back->outputs[0]].name;
}

}  // namespace quench::analyze
