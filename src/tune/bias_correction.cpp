// SPDX-License-Identifier: Apache-2.0
// Full bias correction in two runs. The mean of each layer's float output is one run. The other
// is a run of the quantised model in which every layer is followed by nodes that shift its output
// to that mean: each layer then sees corrected inputs, and the shifts are read off as taps.
#include "tune/bias_correction.h"

#include <algorithm>

#include "base/format.h"
#include "quench/lower.h"
#include "tune/bias_layers.h"

namespace quench::tune {
namespace {

using Layers = std::vector<BiasLayer>;

/// Every axis but the channels'.
std::vector<std::int64_t> mean_axes(const BiasLayer& layer) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < layer.rank; ++i) {
    if (i != layer.channel_axis()) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

std::string mean_name(const BiasLayer& layer) { return layer.output + "/quench_mean"; }
std::string target_name(const BiasLayer& layer) { return layer.output + "/quench_target"; }
std::string shift_name(const BiasLayer& layer) { return layer.output + "/quench_shift"; }

Node mean_node(Model& model, ValueId source, const BiasLayer& layer) {
  constexpr std::int64_t kAxesAreAnInput = 18;
  Graph& graph = model.graph;
  Node node;
  node.op_type = "ReduceMean";
  node.inputs = {source};
  node.outputs = {graph.add_fresh(mean_name(layer))};
  const std::vector<std::int64_t> axes = mean_axes(layer);
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

/// The float model with the mean of each layer's output as an output of its own.
Model measuring(const Model& model, const Layers& layers) {
  Model measured = model;
  Graph& graph = measured.graph;
  for (const BiasLayer& layer : layers) {
    Node mean = mean_node(measured, graph.find(layer.output), layer);
    graph.nodes.push_back(std::move(mean));
    graph.outputs.push_back(graph.nodes.back().outputs[0]);
  }
  return measured;
}

/// Behind the node that makes the layer's output: mean, shift to the mean that the caller feeds,
/// shifted output for all readers.
void add_shift(Model& model, const BiasLayer& layer) {
  Graph& graph = model.graph;
  const ValueId out = graph.find(layer.output);
  const auto maker = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.outputs, out) != node.outputs.end();
  });
  if (maker == graph.nodes.end()) {
    fail(ErrorKind::Internal, "the quantised model does not make '{}'", layer.output);
  }
  const auto place = maker - graph.nodes.begin();
  const ValueId shifted = graph.add_fresh(layer.output + "/quench_shifted", graph[out].type);
  replace_uses(graph, out, shifted);
  Node mean = mean_node(model, out, layer);
  const ValueId shift = graph.add_fresh(shift_name(layer));
  const ValueId target = graph.add_fresh(
      target_name(layer), ValueType::tensor(DType::Float32, std::vector<Dim>(layer.rank, Dim{})));
  graph.inputs.push_back(target);
  Node difference = binary("Sub", target, mean.outputs[0], shift);
  Node sum = binary("Add", out, shift, shifted);
  const auto at = graph.nodes.begin() + place + 1;
  graph.nodes.insert(at, {std::move(mean), std::move(difference), std::move(sum)});
  graph.outputs.push_back(shift);
}

std::vector<std::string> names_of(const Layers& layers, std::string (*name)(const BiasLayer&)) {
  std::vector<std::string> names;
  for (const BiasLayer& layer : layers) names.push_back(name(layer));
  return names;
}

void add_to(std::vector<double>& sums, const Tensor& tensor) {
  const std::vector<float> numbers = to_float(tensor);
  sums.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) sums[i] += static_cast<double>(numbers[i]);
}

}  // namespace

std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           std::span<const TensorMap> runs, const Context& context) {
  const Layers layers = find_bias_layers(model, plan);
  if (layers.empty() || runs.empty()) return 0;
  Model shifting = insert_qdq(model, plan, solution);
  for (const BiasLayer& layer : layers) add_shift(shifting, layer);
  Session measured(measuring(model, layers), {}, context);
  Session shifted(std::move(shifting), {.integer = false}, context);
  const std::vector<std::string> means = names_of(layers, mean_name);
  const std::vector<std::string> shifts = names_of(layers, shift_name);
  std::vector<std::vector<double>> sums(layers.size());
  for (const TensorMap& run : runs) {
    context.check_cancelled();
    const TensorMap targets = measured.run(run, means);
    TensorMap feeds = run;
    for (const BiasLayer& layer : layers) feeds[target_name(layer)] = targets.at(mean_name(layer));
    const TensorMap found = shifted.run(feeds, shifts);
    for (std::size_t i = 0; i < layers.size(); ++i) add_to(sums[i], found.at(shifts[i]));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (double& each : sums[i]) each /= static_cast<double>(runs.size());
    move_bias(model, layers[i], sums[i]);
  }
  return layers.size();
}

}  // namespace quench::tune
