// SPDX-License-Identifier: Apache-2.0
// Where each kind of layer keeps its bias.
#include "tune/bias_layers.h"

#include <algorithm>
#include <optional>

#include "plan/facts.h"

namespace quench::tune {
namespace {

/// The bias of a layer that has no input for it is the constant of an Add that alone reads it.
bool find_added_bias(const Model& model, const Uses& uses, const Node& node, BiasLayer& layer) {
  const NodeId reader = uses.only_consumer(node.outputs[0]);
  if (reader < 0) return false;
  const Node& add = model.graph.nodes[static_cast<std::size_t>(reader)];
  if (add.op_type != "Add" || !add.domain.empty()) return false;
  for (const std::size_t i : {0U, 1U}) {
    const Tensor* bias = model.graph.constant(add.input(i));
    // One number a channel: what has more dimensions would add to each position on its own.
    if (bias == nullptr || bias->rank() > 1 || bias->dtype() != DType::Float32) continue;
    layer.bias_node = output_name(model.graph, add);
    layer.bias_input = i;
    return true;
  }
  return false;
}

std::optional<BiasLayer> bias_layer(const Model& model, const Uses& uses, const Node& node) {
  const Value& out = model.graph[node.outputs.at(0)];
  if (!plan::is_layer(node) || !out.type.shape) return std::nullopt;
  BiasLayer layer{.output = out.name,
                  .bias_node = out.name,
                  .rank = out.type.shape->size(),
                  .last = ops::facts(node).weight == ops::WeightKind::Matrix};
  if (layer.rank < 2) return std::nullopt;
  if (ops::facts(node).bias < 0) {
    return find_added_bias(model, uses, node, layer) ? std::optional(layer) : std::nullopt;
  }
  const bool constant = node.input(2) == kNoValue || model.graph.constant(node.input(2)) != nullptr;
  return constant ? std::optional(layer) : std::nullopt;
}

}  // namespace

std::vector<BiasLayer> find_bias_layers(const Model& model, const QuantPlan& plan) {
  const Uses uses(model.graph);
  std::vector<BiasLayer> layers;
  for (const WeightPlan& weight : plan.weights) {
    if (weight.input != 1) continue;
    auto layer = bias_layer(model, uses, node_called(model.graph, weight.node));
    if (layer) layers.push_back(std::move(*layer));
  }
  return layers;
}

void move_bias(Model& model, const BiasLayer& layer, const std::vector<double>& shift) {
  Graph& graph = model.graph;
  Node& node = node_called(graph, layer.bias_node);
  std::vector<float> bias(shift.size());
  std::ranges::transform(shift, bias.begin(), [](double each) { return static_cast<float>(each); });
  if (const Tensor* old = graph.constant(node.input(layer.bias_input))) {
    const std::vector<float> before = to_float(*old);
    const float beta = node.op_type == "Gemm" ? node.get_float("beta", 1.0F) : 1.0F;
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] += beta * before[before.size() == 1 ? 0 : i];
    }
  }
  if (node.op_type == "Gemm") node.set("beta", 1.0F);
  const auto count = static_cast<std::int64_t>(bias.size());
  node.inputs.resize(std::max(node.inputs.size(), layer.bias_input + 1), kNoValue);
  node.inputs[layer.bias_input] = graph.add_constant(
      layer.output + "/bias", Tensor::of<float>({count}, std::span<const float>(bias)));
}

}  // namespace quench::tune
