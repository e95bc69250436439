// SPDX-License-Identifier: Apache-2.0
// Adds nodes that take means, and reads them off.
#include "tune/layer_means.h"

#include <algorithm>

#include "exec/runs_ahead.h"
#include "tune/bias_layers.h"

namespace quench::tune {
namespace {

constexpr std::int64_t kAxesAreAnInput = 18;

/// Axes to be reduced: all but the samples' and the channels'.
std::vector<std::int64_t> inner_axes(std::size_t rank, std::size_t channel_axis) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 1; i < rank; ++i) {
    if (i != channel_axis) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

}  // namespace

ValueId add_sample_means(Model& model, ValueId source, std::size_t channel_axis,
                         std::vector<Node>& nodes) {
  Graph& graph = model.graph;
  const std::size_t rank = graph[source].type.shape->size();
  const std::vector<std::int64_t> axes = inner_axes(rank, channel_axis);
  if (axes.empty()) return source;
  const std::string stem = graph[source].name;
  Node node;
  node.inputs = {source};
  node.outputs = {graph.add_fresh(stem + "/quench_sample_means")};
  if (channel_axis == 1 && rank == 4) {
    node.op_type = "GlobalAveragePool";  // of all means the fastest, and there in every opset
  } else {
    node.op_type = "ReduceMean";
    node.set("keepdims", std::int64_t{1});
    if (model.opset() < kAxesAreAnInput) {
      node.set("axes", axes);
    } else {
      const auto count = static_cast<std::int64_t>(axes.size());
      node.inputs.push_back(graph.add_constant(
          stem + "/quench_axes",
          Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(axes))));
    }
  }
  nodes.push_back(std::move(node));
  return nodes.back().outputs[0];
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& rows) {
  if (rows.empty()) return {};
  std::vector<double> sums(rows.front().size(), 0.0);
  for (const std::vector<float>& row : rows) {
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(row[c]);
  }
  std::vector<float> result(sums.size());
  std::ranges::transform(sums, result.begin(), [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(rows.size()));
  });
  return result;
}

MeanRecorder::MeanRecorder(const Model& model, const QuantPlan& plan) : model_(model) {
  for (const BiasLayer& layer : find_bias_layers(model, plan)) {
    watch(layer.output, layer.channel_axis());
    const ValueId read = node_called(model.graph, layer.output).inputs[0];
    const Value& input = model.graph[read];
    if (!input.type.shape || input.type.shape->size() < 2 || input.constant) continue;
    watch(input.name, layer.last ? input.type.shape->size() - 1 : 1);
  }
}

void MeanRecorder::watch(const std::string& value, std::size_t channel_axis) {
  if (outputs_.contains(value)) return;
  Graph& graph = model_.graph;
  const ValueId source = graph.find(value);
  ValueId means = add_sample_means(model_, source, channel_axis, graph.nodes);
  if (std::ranges::find(graph.inputs, means) != graph.inputs.end()) {
    Node copy;
    copy.op_type = "Identity";
    copy.inputs = {means};
    copy.outputs = {graph.add_fresh(value + "/quench_sample_means")};
    means = copy.outputs[0];
    graph.nodes.push_back(std::move(copy));
  }
  outputs_[value] = graph[means].name;
  if (std::ranges::find(graph.outputs, means) == graph.outputs.end()) {
    graph.outputs.push_back(means);
  }
}

void MeanRecorder::add(const TensorMap& outputs, std::int64_t samples) {
  for (const auto& [value, name] : outputs_) {
    const Tensor& tensor = outputs.at(name);
    const std::vector<float> numbers = to_float(tensor);
    const auto rows = static_cast<std::size_t>(std::max<std::int64_t>(1, tensor.shape()[0]));
    const std::size_t channels = numbers.size() / rows;
    std::vector<std::vector<float>> read(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row * channels);
      read[row].assign(begin, begin + static_cast<std::ptrdiff_t>(channels));
    }
    SampleMeans& means = means_[value];
    const auto wanted = static_cast<std::size_t>(samples);
    if (rows != wanted) {
      means.by_sample = false;  // the first dimension is not that of samples
      read.assign(wanted, mean_of(read));
    }
    means.rows.insert(means.rows.end(), read.begin(), read.end());
  }
}

std::int64_t samples_in(const TensorMap& inputs) {
  const Tensor& first = inputs.begin()->second;
  return first.rank() == 0 ? 1 : std::max<std::int64_t>(1, first.shape()[0]);
}

LayerMeans measure_means(const Model& model, const QuantPlan& plan, std::span<const TensorMap> runs,
                         const Context& context) {
  MeanRecorder recorder(model, plan);
  Session session(recorder.model(), {}, context);
  exec::RunsAhead made(session, runs.size(), [&](std::size_t i) { return runs[i]; });
  for (const TensorMap& run : runs) {
    context.check_cancelled();
    recorder.add(made.next(), samples_in(run));
  }
  return recorder.means();
}

}  // namespace quench::tune
