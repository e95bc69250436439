// SPDX-License-Identifier: Apache-2.0
// Looks at what the first layer makes of raw pixels.
#include "evaluate/raw_pixels.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "evaluate/random_inputs.h"
#include "evaluate/samples.h"
#include "ops/facts.h"
#include "passes/part_of.h"
#include "quench/session.h"

namespace quench::evaluation {
namespace {

constexpr std::int64_t kSamples = 4;
/// The deviation of the middle channel behind the first layer and its normalisation. Networks are
/// trained to have about 1 there. Measured with ten networks for images: 0.2 to 1.3 with the
/// numbers they were trained on, one that takes 0..255 among them, and 11 to 161 for the nine
/// others with raw pixels.
constexpr double kMostDeviation = 4;
/// What a quantised input holds at least where raw pixels are meant.
constexpr double kLeastRange = 32;

/// The value behind the first layer: its output, or what normalisation or a bias makes of it.
struct FirstLayer {
  std::string node;
  std::string value;
};

std::optional<FirstLayer> first_layer(const Graph& graph) {
  const auto found = std::ranges::find_if(graph.nodes, ops::is_layer);
  if (found == graph.nodes.end()) return std::nullopt;
  const Uses uses(graph);
  ValueId value = found->outputs[0];
  for (NodeId next = uses.only_consumer(value); next >= 0; next = uses.only_consumer(value)) {
    const Node& node = graph.nodes[static_cast<std::size_t>(next)];
    const bool bias =
        node.op_type == "Add" && node.inputs.size() == 2 &&
        (graph.constant(node.inputs[0]) != nullptr || graph.constant(node.inputs[1]) != nullptr);
    if (node.op_type != "BatchNormalization" && !bias) break;
    value = node.outputs[0];
  }
  return FirstLayer{label(graph, *found), graph[value].name};
}

/// Sums by channel, which is the second dimension.
struct Channels {
  std::vector<double> sum, squares;
  double count = 0;

  void add(const Tensor& tensor) {
    const Shape& shape = tensor.shape();
    if (shape.size() < 2 || shape[1] == 0 || !info(tensor.dtype()).is_float) return;
    const auto channels = static_cast<std::size_t>(shape[1]);
    sum.resize(channels);
    squares.resize(channels);
    const std::vector<float> values = to_float(tensor);
    const std::size_t rows = static_cast<std::size_t>(shape[0]) * channels;
    const std::size_t inner = rows == 0 ? 0 : values.size() / rows;
    for (std::size_t i = 0; i < rows * inner; ++i) {
      const auto value = static_cast<double>(values[i]);
      sum[i / inner % channels] += value;
      squares[i / inner % channels] += value * value;
    }
    count += static_cast<double>(values.size() / channels);
  }

  double middle_deviation() const {
    std::vector<double> deviations;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double mean = sum[i] / count;
      deviations.push_back(std::sqrt(std::max(0.0, squares[i] / count - mean * mean)));
    }
    if (deviations.empty()) return 0;
    const auto middle = deviations.begin() + static_cast<std::ptrdiff_t>(deviations.size() / 2);
    std::ranges::nth_element(deviations, middle);
    return *middle;
  }
};

/// The most that a quantised model's input can hold; nothing where it is not quantised at once.
std::optional<double> quantised_range(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op_type != "QuantizeLinear" || node.inputs.size() < 2) continue;
    if (std::ranges::find(graph.inputs, node.inputs[0]) == graph.inputs.end()) continue;
    const Tensor* scale = graph.constant(node.inputs[1]);
    if (scale == nullptr || scale->size() != 1) return std::nullopt;
    constexpr double kSteps = 255;
    return to_float(*scale)[0] * kSteps;
  }
  return std::nullopt;
}

std::string sentence(const std::string& why, const std::string& model, const std::string& data) {
  return format(
      "images are fed as numbers from 0 to 255, because neither --preset nor --mean and --std are "
      "given, but {}; `quench doctor {} --data {}` tells how they should be prepared",
      why, model, data);
}

}  // namespace

std::optional<std::string> doubt_raw_pixels(const Model& model, const std::string& model_path,
                                            const std::string& data_path, SampleSource& source,
                                            const Context& context) {
  if (!source.raw_pixels() || source.size() == 0) return std::nullopt;
  if (const auto range = quantised_range(model.graph)) {
    if (*range >= kLeastRange) return std::nullopt;
    return sentence(format("the model's quantised input holds a range of {:.3g}", *range),
                    model_path, data_path);
  }
  const std::optional<FirstLayer> first = first_layer(model.graph);
  if (!first) return std::nullopt;
  Session session(passes::part_of(model, {first->value}), {}, context);
  Channels channels;
  const std::vector<Value> inputs = required_inputs(model.graph);
  const std::int64_t count = std::min(source.size(), std::max(kSamples, run_size(source, inputs)));
  for (const TensorMap& run : read_runs(source, inputs, {.first = 0, .count = count}, 1)) {
    context.check_cancelled();
    channels.add(session.run(run).at(first->value));
  }
  const double deviation = channels.middle_deviation();
  if (!(deviation > kMostDeviation)) return std::nullopt;
  return sentence(format("the first layer, {}, expects smaller ones: its outputs deviate by "
                         "{:.3g}, where networks are trained to have about 1",
                         first->node, deviation),
                  model_path, data_path);
}

}  // namespace quench::evaluation
