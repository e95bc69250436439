// SPDX-License-Identifier: Apache-2.0
// Compares what BatchNormalization sees with what it saw in training.
#include "report/batchnorm_check.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "passes/part_of.h"

namespace quench {
namespace {

/// Preparation shows best in the first layers; a few samples are enough to see it.
constexpr std::size_t kNodes = 3;
constexpr std::int64_t kSamples = 32;

/// A BatchNormalization node: the value it normalises, and what training made of it.
struct Norm {
  std::string node;
  std::string input;
  std::vector<double> mean;
  std::vector<double> variance;
  std::vector<double> sum;
  std::vector<double> squares;
  double count = 0;  ///< values seen a channel
};

std::vector<double> doubles(const Tensor& tensor) {
  const std::vector<float> values = to_float(tensor);
  return {values.begin(), values.end()};
}

std::vector<Norm> first_norms(const Graph& graph) {
  std::vector<Norm> norms;
  for (const Node& node : graph.nodes) {
    if (norms.size() == kNodes) break;
    if (node.op_type != "BatchNormalization" || node.inputs.size() < 5) continue;
    const Tensor* mean = graph.constant(node.inputs[3]);
    const Tensor* variance = graph.constant(node.inputs[4]);
    const bool running = node.get_int("training_mode", 0) == 0 && node.outputs.size() == 1 &&
                         mean != nullptr && variance != nullptr && mean->size() == variance->size();
    if (!running || graph.constant(node.inputs[0]) != nullptr) continue;
    Norm norm{.node = label(graph, node), .input = graph[node.inputs[0]].name};
    norm.mean = doubles(*mean);
    norm.variance = doubles(*variance);
    const auto epsilon = static_cast<double>(node.get_float("epsilon", 1e-5F));
    for (double& each : norm.variance) each = std::max(each, 0.0) + epsilon;
    norm.sum.assign(norm.mean.size(), 0);
    norm.squares.assign(norm.mean.size(), 0);
    norms.push_back(std::move(norm));
  }
  return norms;
}

/// The part of the model that computes the norms' inputs.
Model first_layers(const Model& model, const std::vector<Norm>& norms) {
  std::vector<std::string> inputs;
  for (const Norm& norm : norms) inputs.push_back(norm.input);
  return passes::part_of(model, inputs);
}

/// Values are [samples, channels, ...].
void add(Norm& norm, const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const std::size_t channels = norm.mean.size();
  if (tensor.dtype() != DType::Float32 || shape.size() < 2 ||
      static_cast<std::size_t>(shape[1]) != channels || tensor.size() == 0) {
    return;
  }
  const auto values = tensor.data<float>();
  const std::size_t rows = static_cast<std::size_t>(shape[0]) * channels;
  const std::size_t inner = values.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = row * inner; i < (row + 1) * inner; ++i) {
      const auto value = static_cast<double>(values[i]);
      sum += value;
      squares += value * value;
    }
    norm.sum[row % channels] += sum;
    norm.squares[row % channels] += squares;
  }
  norm.count += static_cast<double>(shape[0]) * static_cast<double>(inner);
}

/// How unlike training the inputs are.
struct Distance {
  double shift = 0;   ///< root mean square over channels of the means' distance, in deviations
  double spread = 1;  ///< the middle channel's ratio of deviations
};

Distance distance(const Norm& norm) {
  Distance result;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < norm.mean.size(); ++i) {
    const double mean = norm.sum[i] / norm.count;
    const double variance = std::max(0.0, norm.squares[i] / norm.count - mean * mean);
    const double shift = (mean - norm.mean[i]) / std::sqrt(norm.variance[i]);
    result.shift += shift * shift / static_cast<double>(norm.mean.size());
    ratios.push_back(std::sqrt(variance / norm.variance[i]));
  }
  result.shift = std::sqrt(result.shift);
  std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
  result.spread = ratios[ratios.size() / 2];
  return result;
}

}  // namespace

void warn_of_unlike_data(const Model& unfolded, const evaluation::Samples& samples,
                         const Context& context, QuantizeReport& report) {
  // Measured on 32 samples with a MobileNetV2, a ResNet8 and a DS-CNN: right data give a shift of
  // at most 0.15 and a spread of 0.82 to 1.2; 127.5 for mean and std of ImageNet gives a spread of
  // 0.39.
  constexpr double kMostShift = 0.6;
  constexpr double kMostSpread = 1.6;
  std::vector<Norm> norms = first_norms(unfolded.graph);
  if (norms.empty()) return;
  Session session(first_layers(unfolded, norms), {}, context);
  const std::int64_t size = samples.run_size();
  const std::int64_t count = samples.first(kSamples).count;
  for (std::int64_t i = 0; i + size <= count; i += size) {
    context.check_cancelled();
    const TensorMap values = session.run(samples.read({i, size}, size).at(0));
    for (Norm& norm : norms) add(norm, values.at(norm.input));
  }
  for (const Norm& norm : norms) {
    if (norm.count < 2) continue;
    const auto [shift, spread] = distance(norm);
    if (!std::isfinite(shift)) continue;  // of infinite values another warning tells
    if (shift <= kMostShift && spread <= kMostSpread && spread >= 1 / kMostSpread) continue;
    report.warnings.push_back(format(
        "the data look unlike those of training: at {} the means are {:.1f} standard deviations "
        "off "
        "and the deviations {:.2f} times as large; check --mean, --std, --color and --resize",
        norm.node, shift, spread));
    return;
  }
}

}  // namespace quench
