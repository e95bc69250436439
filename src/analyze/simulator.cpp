// SPDX-License-Identifier: Apache-2.0
// Any choice of quantised layers from one set of statistics.
#include "analyze/simulator.h"

#include <algorithm>

#include "base/format.h"
#include "base/share.h"
#include "calibrate/collect.h"
#include "calibrate/shards.h"
#include "plan/facts.h"
#include "quench/lower.h"
#include "tune/bias_correction.h"
#include "tune/bias_layers.h"

namespace quench::analyze {
namespace {

/// Layers of which no model is left in float.
std::set<std::string> quantized_nodes(const QuantPlan& plan) {
  std::set<std::string> nodes;
  for (const WeightPlan& weight : plan.weights) nodes.insert(weight.node);
  return nodes;
}

QuantConfig config_of(const QuantConfig& base, const Choice& choice) {
  QuantConfig config = base;
  config.skip_quant_node.insert(config.skip_quant_node.end(), choice.in_float.begin(),
                                choice.in_float.end());
  for (const auto& [layer, bits] : choice.weight_bits) config.by_layer[layer].weight_bits = bits;
  return config;
}

Choice all_but(const std::vector<Layer>& layers, const std::string& name) {
  Choice choice;
  for (const Layer& layer : layers) {
    if (layer.name != name) choice.in_float.insert(layer.name);
  }
  return choice;
}

}  // namespace

std::vector<Layer> find_layers(const Graph& graph, const QuantPlan& plan,
                               const std::vector<WeightItem>& stored) {
  std::vector<Layer> layers;
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = node_called(graph, weight.node);
    if (!plan::is_layer(node) || weight.input != 1) continue;
    layers.push_back({.name = plan::key_of(graph, node),
                      .op_type = node.op_type,
                      .weight = graph[node.inputs[weight.input]].name,
                      .output = plan.result_of(weight.node),
                      .node = weight.node});
  }
  for (const WeightItem& item : stored) {
    for (const plan::WeightSite& site : item.sites) {
      const Node& node = site.node_in(graph);
      const std::string name = plan::key_of(graph, node);
      // An LSTM has two weights and is one layer.
      if (!layers.empty() && layers.back().name == name) continue;
      layers.push_back({.name = name,
                        .op_type = node.op_type,
                        .weight = item.name,
                        .output = site.node,
                        .node = site.node,
                        .stored = true});
    }
  }
  return layers;
}

std::vector<std::string> values_of_any_choice(const Model& model, const QuantConfig& config) {
  std::set<std::string> names;
  const auto add = [&](const QuantPlan& plan) {
    for (const auto& [name, value] : plan.values) {
      if (value.kind != ValuePlan::Kind::Float) names.insert(name);
    }
  };
  const QuantPlan whole = make_plan(model, config);
  add(whole);
  const std::vector<Layer> layers = find_layers(model.graph, whole);
  for (const Layer& layer : layers) {
    add(make_plan(model, config_of(config, all_but(layers, layer.name))));
  }
  return {names.begin(), names.end()};
}

Simulator::Simulator(const tune::State& state)
    : state_(state), layers_(find_layers(state.model.graph, state.plan, state.stored)) {
  if (layers_.empty()) {
    fail(ErrorKind::Unsupported, "the model has no layer that can be quantised for target '{}'",
         state.config.target);
  }
}

Choice Simulator::only(const std::string& name) const { return all_but(layers_, name); }

QuantPlan Simulator::plan_of(const Choice& choice) const {
  if (state_.plan.weights.empty()) return {};
  QuantPlan plan = make_plan(state_.model, config_of(state_.config, choice));
  // What the job chose holds wherever the value is still quantised.
  for (auto& [name, value] : plan.values) {
    const auto known = state_.plan.values.find(name);
    if (known != state_.plan.values.end()) value.spec.observer = known->second.spec.observer;
  }
  return plan;
}

const QuantParams& Simulator::value_params(const std::string& name, const ValuePlan& plan) {
  std::vector<KnownParams>& known = values_[name];
  // What lies around a value decides whether its range is known or observed.
  const bool fixed = plan.kind == ValuePlan::Kind::Fixed;
  for (const KnownParams& each : known) {
    if (each.spec == plan.spec && each.fixed == fixed) return each.params;
  }
  QuantPlan one;
  one.values[name] = plan;
  const QuantSolution found =
      calibrate::solve(state_.model, one, state_.statistics, state_.config.custom_observers,
                       state_.context.num_threads());
  known.push_back({.spec = plan.spec, .fixed = fixed, .params = found.values.at(name)});
  return known.back().params;
}

const QuantParams& Simulator::weight_params(const WeightPlan& plan) {
  std::vector<KnownParams>& known = weights_[plan.key()];
  for (const KnownParams& each : known) {
    if (each.spec == plan.spec) return each.params;
  }
  QuantPlan one;
  one.weights.push_back(plan);
  const QuantSolution found =
      calibrate::solve(state_.model, one, state_.statistics, state_.config.custom_observers,
                       state_.context.num_threads(), shards(state_.context));
  known.push_back({.spec = plan.spec, .params = found.weights.at(plan.key())});
  return known.back().params;
}

QuantSolution Simulator::solve(const QuantPlan& plan) {
  QuantSolution solution;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed || value.kind == ValuePlan::Kind::Fixed) {
      solution.values[name] = value_params(name, value);
    }
  }
  calibrate::share_params(plan, solution);
  for (const WeightPlan& weight : plan.weights) {
    solution.weights[weight.key()] = weight_params(weight);
  }
  if (Ranks* ranks = shards(state_.context)) {
    (void)legalize(state_.model, plan, solution);
    calibrate::share_scales(state_.model, plan, *ranks, solution);
  }
  return solution;
}

/// A layer alone reads float values: only its own error is to be made up for.
const Model& Simulator::corrected_alone() {
  if (!alone_) {
    alone_ = state_.model;
    tune::correct_biases_fast(*alone_, state_.plan, state_.solution, state_.means);
  }
  return *alone_;
}

Model Simulator::with_biases(const QuantPlan& plan) {
  if (!state_.tuned) return state_.model;
  const std::set<std::string> quantized = quantized_nodes(plan);
  const bool most = quantized.size() * 2 > quantized_nodes(state_.plan).size();
  Model model = most || state_.means.empty() ? *state_.tuned : corrected_alone();
  for (const tune::BiasLayer& layer : tune::find_bias_layers(state_.model, state_.plan)) {
    if (quantized.contains(layer.output)) continue;
    for (const std::string& name : {layer.output, layer.bias_node}) {
      node_called(model.graph, name) = node_called(state_.model.graph, name);
    }
  }
  return model;
}

tune::StoredIntegers Simulator::round(const tune::StoredItem& stored) {
  const std::pair key(stored.place, stored.item.spec.bits);
  const auto known = stored_.find(key);
  if (known != stored_.end()) return known->second;
  return stored_[key] = tune::round_stored(state_, state_.model, stored);
}

std::optional<quant::QuantWeight> Simulator::stored_weight(const Layer& layer) {
  for (std::size_t i = 0; i < state_.stored.size(); ++i) {
    const WeightItem& item = state_.stored[i];
    if (item.name != layer.weight || item.dynamic) continue;
    return round({.item = item, .place = i}).weight;
  }
  return std::nullopt;
}

/// The static part of a choice.
Model Simulator::with_integers(const Choice& choice) {
  if (state_.plan.weights.empty()) return state_.to_quantize();
  if (choice == Choice()) return insert_qdq(state_.to_quantize(), state_.plan, state_.solution);
  const QuantPlan plan = plan_of(choice);
  return insert_qdq(with_biases(plan), plan, solve(plan));
}

Model Simulator::quantized(const Choice& choice) {
  Model model = with_integers(choice);
  const Graph& graph = state_.model.graph;
  std::vector<tune::StoredItem> items;
  for (std::size_t i = 0; i < state_.stored.size(); ++i) {
    tune::StoredItem stored{.item = state_.stored[i], .place = i};
    std::erase_if(stored.item.sites, [&](const plan::WeightSite& site) {
      return choice.in_float.contains(plan::key_of(graph, site.node_in(graph)));
    });
    if (stored.item.sites.empty()) continue;
    const auto bits =
        choice.weight_bits.find(plan::key_of(graph, stored.item.sites.front().node_in(graph)));
    if (bits != choice.weight_bits.end() && !stored.item.dynamic) {
      set_bits(graph, state_.options, bits->second, stored.item);
    }
    items.push_back(std::move(stored));
  }
  QuantizeReport unread;
  const auto round_once = [&](const tune::StoredItem& stored) { return round(stored); };
  tune::put_stored(state_, std::move(items), {.round = round_once, .progress = {}}, model, unread);
  return model;
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
