// SPDX-License-Identifier: Apache-2.0
// What a user should know about data, ranges and layers, with the flag that helps.
#include "report/advice.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "plan/facts.h"

namespace quench {
namespace {

constexpr std::int64_t kFewSamples = 10;
/// A scale may leave out a few outliers; this share of the values is more than that.
constexpr double kMuchClipped = 0.01;
/// How far beyond the calibrated range, in parts of it, other samples may reach.
constexpr double kFarOutside = 0.25;
constexpr double kPoorSqnr = 20;
constexpr std::size_t kShown = 3;

/// "'a', 'b', 'c' and 4 more".
std::string first_few(const std::vector<std::string>& items) {
  std::string text = fmt::format(
      "{}",
      fmt::join(items.begin(),
                items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kShown)), ", "));
  if (items.size() > kShown) text += format(" and {} more", items.size() - kShown);
  return text;
}

/// How many channels of a weight hold nothing but zeros.
std::int64_t zero_channels(const Tensor& weight, std::size_t axis) {
  const Shape& shape = weight.shape();
  if (axis >= shape.size() || weight.dtype() != DType::Float32) return 0;
  const auto channels = static_cast<std::size_t>(shape[axis]);
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  std::vector<bool> alive(channels, false);
  const Tensor held = weight.held();
  const auto values = held.data<float>();
  for (std::size_t row = 0; row < values.size(); row += channels * inner) {
    for (std::size_t i = 0; i < channels; ++i) {
      const auto run = values.subspan(row + i * inner, inner);
      alive[i] = alive[i] || std::ranges::any_of(run, [](float value) { return value != 0.0F; });
    }
  }
  return std::ranges::count(alive, false);
}

}  // namespace

double clipped_share(const Statistic& statistic, const QuantParams& params) {
  if (statistic.count == 0 || params.scale.size() != 1) return 0;
  const auto scale = static_cast<double>(params.scale[0]);
  const auto real = [&](std::int64_t step) {
    return (static_cast<double>(step) - params.zero_point[0]) * scale;
  };
  const double low = real(params.spec.q_min()) - scale / 2;
  const double high = real(params.spec.q_max()) + scale / 2;
  std::int64_t outside = 0;
  for (std::size_t i = 0; i < statistic.bins.size(); ++i) {
    const double begin = static_cast<double>(statistic.first_bin + static_cast<std::int64_t>(i)) *
                         statistic.bin_width;
    if (begin > high || begin + statistic.bin_width < low) outside += statistic.bins[i];
  }
  return static_cast<double>(outside) / static_cast<double>(statistic.count);
}

void warn_of_values(const StatisticMap& statistics, QuantizeReport& report) {
  for (const auto& [name, statistic] : statistics) {
    if (statistic.nans + statistic.infinities > 0) {
      report.warnings.push_back(
          format("'{}' held {} NaN and {} infinite values during calibration; they were left out",
                 name, statistic.nans, statistic.infinities));
    }
    if (statistic.count > 0 && statistic.min == statistic.max) {
      report.warnings.push_back(format(
          "'{}' was {} everywhere during calibration; are the data right?", name, statistic.min));
    }
  }
}

void warn_of_few_samples(std::int64_t samples, QuantizeReport& report) {
  if (samples >= kFewSamples) return;
  report.warnings.push_back(
      format("only {} to calibrate with; 100 or more that look like the real ones give "
             "better ranges (--data, --limit)",
             samples == 1 ? "1 sample" : format("{} samples", samples)));
}

void warn_of_clipping(const StatisticMap& statistics, const QuantSolution& solution,
                      QuantizeReport& report) {
  std::vector<std::string> clipped;
  for (const auto& [name, statistic] : statistics) {
    const auto params = solution.values.find(name);
    if (params == solution.values.end()) continue;
    const double share = clipped_share(statistic, params->second);
    if (share > kMuchClipped) clipped.push_back(format("'{}' ({:.1f} %)", name, share * 100));
  }
  if (clipped.empty()) return;
  report.warnings.push_back(
      format("the chosen ranges clip much of {}: --activation-observer min_max clips nothing, "
             "--activation-observer mse little",
             first_few(clipped)));
}

void warn_of_unseen_inputs(const TensorMap& inputs, const StatisticMap& statistics,
                           QuantizeReport& report) {
  for (const auto& [name, tensor] : inputs) {
    const auto seen = statistics.find(name);
    if (seen == statistics.end() || seen->second.count == 0) continue;
    if (tensor.dtype() != DType::Float32 || tensor.size() == 0) continue;
    const Statistic& statistic = seen->second;
    const auto [low, high] = std::ranges::minmax(tensor.data<float>());
    const double room = kFarOutside * (statistic.max - statistic.min);
    if (static_cast<double>(low) >= statistic.min - room &&
        static_cast<double>(high) <= statistic.max + room) {
      continue;
    }
    report.warnings.push_back(format(
        "the input '{}' reaches from {:.3g} to {:.3g} in the validation set, calibration saw "
        "only {:.3g} to {:.3g}: calibrate with more, and more varied, samples (--limit)",
        name, low, high, statistic.min, statistic.max));
  }
}

void warn_of_dead_channels(const Model& model, const QuantPlan& plan, QuantizeReport& report) {
  std::vector<std::string> layers;
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = node_called(model.graph, weight.node);
    const Tensor* tensor = model.graph.constant(node.input(weight.input));
    if (tensor == nullptr || weight.spec.axis < 0) continue;
    const std::int64_t dead = zero_channels(*tensor, static_cast<std::size_t>(weight.spec.axis));
    if (dead > 0) layers.push_back(format("{} of {}", dead, label(model.graph, node)));
  }
  if (layers.empty()) return;
  report.warnings.push_back(
      format("channels whose weights are all zero compute nothing: {}; was the model pruned, or "
             "did its training fail?",
             first_few(layers)));
}

void warn_of_shared_scales(const Model& model, const QuantPlan& plan, QuantizeReport& report) {
  std::vector<std::string> layers;
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = node_called(model.graph, weight.node);
    const Tensor* tensor = model.graph.constant(node.input(weight.input));
    if (tensor == nullptr || weight.spec.axis >= 0 || !plan::is_layer(node)) continue;
    // Where a layer could have one for each and has not, that was asked for.
    if (plan::channel_axis(node, weight.input, *tensor) >= 0) return;
    const bool grouped = node.op_type == "ConvTranspose" && node.get_int("group", 1) > 1;
    if (grouped) layers.push_back(label(model.graph, node));
  }
  if (layers.empty() || !find_target(plan.target).per_channel) return;
  report.warnings.push_back(
      format("all channels of {} share one scale: ONNX has none for each output channel of a "
             "ConvTranspose with groups",
             first_few(layers)));
}

void warn_of_layers(QuantizeReport& report) {
  double worst = kPoorSqnr;
  for (const OutputScores& output : report.outputs) {
    worst = std::min(worst, output.scores.at("sqnr"));
  }
  if (!(worst < kPoorSqnr) || report.layers.empty()) return;
  std::vector<const LayerScore*> layers;
  for (const LayerScore& layer : report.layers) layers.push_back(&layer);
  std::ranges::stable_sort(layers, {}, [](const LayerScore* layer) { return layer->output_sqnr; });
  layers.resize(std::min(layers.size(), kShown));
  std::vector<std::string> names;
  std::vector<std::string> figures;
  for (const LayerScore* layer : layers) {
    names.push_back(layer->node);
    figures.push_back(format("{} ({:.1f} dB)", layer->node, layer->output_sqnr));
  }
  report.warnings.push_back(
      format("the outputs have an SQNR of {:.1f} dB; these layers cost them most, each quantised "
             "alone: {}; leave them in float with --skip-node {}, or rank all layers with `quench "
             "analyze sensitivity`",
             worst, fmt::join(figures, ", "), fmt::join(names, ",")));
}

}  // namespace quench
