// SPDX-License-Identifier: Apache-2.0
// Full bias correction in two runs. The mean of each layer's float output is one run. The other
// is a run of the quantised model in which every layer is followed by nodes that shift its output
// to that mean: each layer then sees corrected inputs, and the shifts are read off as taps.
#include "tune/bias_correction.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "quench/lower.h"

namespace quench::tune {
namespace {

/// A layer whose bias may move: a constant bias, or none yet.
struct Layer {
  NodeId node = -1;
  std::string output;
  std::size_t rank = 0;  ///< of the output
};

bool is_weighted(const Node& node) {
  constexpr std::array kOps = {"Conv", "Gemm", "MatMul", "ConvTranspose"};
  return std::ranges::find(kOps, node.op_type) != kOps.end();
}

std::vector<Layer> find_layers(const Model& model, const QuantPlan& plan) {
  std::vector<Layer> layers;
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = model.graph.nodes[static_cast<std::size_t>(weight.node)];
    const ValueId out = node.outputs.at(0);
    const bool fixed_bias =
        node.input(2) == kNoValue || model.graph.constant(node.input(2)) != nullptr;
    if (weight.input != 1 || !is_weighted(node) || node.op_type == "MatMul" || !fixed_bias ||
        !model.graph[out].type.shape) {
      continue;
    }
    layers.push_back({.node = weight.node,
                      .output = model.graph[out].name,
                      .rank = model.graph[out].type.shape->size()});
  }
  return layers;
}

/// Every axis but the channels'.
std::vector<std::int64_t> mean_axes(std::size_t rank) {
  std::vector<std::int64_t> axes = {0};
  for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

std::string mean_name(const Layer& layer) { return layer.output + "/quench_mean"; }
std::string shift_name(const Layer& layer) { return layer.output + "/quench_shift"; }

Node mean_node(Model& model, ValueId source, const Layer& layer) {
  constexpr std::int64_t kAxesAreAnInput = 18;
  Graph& graph = model.graph;
  Node node;
  node.op_type = "ReduceMean";
  node.inputs = {source};
  node.outputs = {graph.add_fresh(mean_name(layer))};
  const std::vector<std::int64_t> axes = mean_axes(layer.rank);
  if (model.opset() < kAxesAreAnInput) {
    node.set("axes", axes);
  } else {
    const auto count = static_cast<std::int64_t>(axes.size());
    node.inputs.push_back(
        graph.add_constant(layer.output + "/quench_axes",
                           Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(axes))));
  }
  node.set("keepdims", std::int64_t{1});
  return node;
}

Node binary(std::string op, ValueId a, ValueId b, ValueId out) {
  Node node;
  node.op_type = std::move(op);
  node.inputs = {a, b};
  node.outputs = {out};
  return node;
}

TensorMap float_means(const Model& model, const std::vector<Layer>& layers,
                      const TensorMap& samples, const Context& context) {
  Model measured = model;
  std::vector<std::string> wanted;
  for (const Layer& layer : layers) {
    Graph& graph = measured.graph;
    Node mean = mean_node(measured, graph.find(layer.output), layer);
    graph.nodes.push_back(std::move(mean));
    graph.outputs.push_back(graph.nodes.back().outputs[0]);
    wanted.push_back(mean_name(layer));
  }
  return Session(std::move(measured), {}, context).run(samples, wanted);
}

/// Behind the node that makes the layer's output: mean, shift, shifted output for all readers.
void add_shift(Model& model, const Layer& layer, const Tensor& target) {
  Graph& graph = model.graph;
  const ValueId out = graph.find(layer.output);
  const auto maker = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, out) != node.outputs.end();
  });
  if (maker == graph.nodes.end()) return;
  const auto place = maker - graph.nodes.begin();
  const ValueId shifted = graph.add_fresh(layer.output + "/quench_shifted", graph[out].type);
  replace_uses(graph, out, shifted);
  Node mean = mean_node(model, out, layer);
  const ValueId shift = graph.add_fresh(shift_name(layer));
  Node difference = binary("Sub", graph.add_constant(layer.output + "/quench_target", target),
                           mean.outputs[0], shift);
  Node sum = binary("Add", out, shift, shifted);
  const auto at = graph.nodes.begin() + place + 1;
  graph.nodes.insert(at, {std::move(mean), std::move(difference), std::move(sum)});
  graph.outputs.push_back(shift);
}

TensorMap shifts_of(const Model& model, const QuantPlan& plan, const QuantSolution& solution,
                    const std::vector<Layer>& layers, const TensorMap& targets,
                    const TensorMap& samples, const Context& context) {
  Model quantised = insert_qdq(model, plan, solution);
  std::vector<std::string> wanted;
  for (const Layer& layer : layers) {
    add_shift(quantised, layer, targets.at(mean_name(layer)));
    wanted.push_back(shift_name(layer));
  }
  return Session(std::move(quantised), {}, context).run(samples, wanted);
}

void move_bias(Model& model, const Layer& layer, const Tensor& shift) {
  Graph& graph = model.graph;
  Node& node = graph.nodes[static_cast<std::size_t>(layer.node)];
  std::vector<float> bias = to_float(shift);
  if (const Tensor* old = graph.constant(node.input(2))) {
    const std::vector<float> before = to_float(*old);
    const float beta = node.op_type == "Gemm" ? node.get_float("beta", 1.0F) : 1.0F;
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] += beta * before[before.size() == 1 ? 0 : i];
    }
  }
  if (node.op_type == "Gemm") node.set("beta", 1.0F);
  const auto count = static_cast<std::int64_t>(bias.size());
  node.inputs.resize(3, kNoValue);
  node.inputs[2] = graph.add_constant(layer.output + "/bias",
                                      Tensor::of<float>({count}, std::span<const float>(bias)));
}

}  // namespace

std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           const TensorMap& samples, const Context& context) {
  const std::vector<Layer> layers = find_layers(model, plan);
  if (layers.empty()) return 0;
  const TensorMap targets = float_means(model, layers, samples, context);
  const TensorMap shifts = shifts_of(model, plan, solution, layers, targets, samples, context);
  for (const Layer& layer : layers) move_bias(model, layer, shifts.at(shift_name(layer)));
  return layers.size();
}

}  // namespace quench::tune
