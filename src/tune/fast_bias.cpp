// SPDX-License-Identifier: Apache-2.0
// Fast bias correction: what the rounding of weights adds to a layer's mean output.
#include <cmath>

#include "exec/runs_ahead.h"
#include "passes/layer.h"
#include "plan/facts.h"
#include "quench/lower.h"
#include "tune/bias_correction.h"
#include "tune/bias_layers.h"

namespace quench::tune {
namespace {

/// -(Wq - W) E[x], one number a channel; empty where the layer's input is not known by channel.
std::vector<double> shift_of(Model& model, const BiasLayer& layer, const QuantParams& params,
                             const std::vector<float>& mean) {
  const Node& node = node_called(model.graph, layer.output);
  const passes::PassOptions options;
  const passes::Rewriter rewriter(model.graph, model, options);
  const auto known = passes::layer_of(rewriter, node);
  if (!known) return {};
  const Tensor& weight = *model.graph.constant(node.inputs[1]);
  const Tensor real = convert(weight, DType::Float32).held();
  const Tensor fake = convert(fake_quantize(weight, params), DType::Float32);
  const auto before = real.data<float>();
  const auto after = fake.data<float>();
  std::vector<double> shift(static_cast<std::size_t>(known->channels.count), 0.0);
  bool fits = true;
  passes::WeightMap(*known, weight).for_each([&](std::size_t i, passes::WeightMap::Channels at) {
    fits = fits && at.in < mean.size();
    if (!fits) return;
    const double error = static_cast<double>(after[i]) - static_cast<double>(before[i]);
    shift[at.out] -= error * static_cast<double>(mean[at.in]);
  });
  return fits ? shift : std::vector<double>();
}

}  // namespace

std::size_t correct_biases_fast(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                                const LayerMeans& means, bool own) {
  QuantSolution legalized = solution;
  legalize(model, plan, legalized);
  std::size_t corrected = 0;
  for (const BiasLayer& layer : find_bias_layers(model, plan)) {
    const Node& node = node_called(model.graph, layer.output);
    const auto found = means.find(model.graph[node.inputs[0]].name);
    const auto params = legalized.weights.find({layer.output, 1});
    if (found == means.end() || params == legalized.weights.end()) continue;
    if ((layer.last && layer.rank != 2) || (own && layer.bias_node != layer.output)) continue;
    const std::vector<double> shift =
        shift_of(model, layer, params->second, mean_of(found->second.rows));
    if (shift.empty()) continue;
    move_bias(model, layer, shift);
    ++corrected;
  }
  return corrected;
}

std::set<std::string> poor_layers(const Model& model, const Model& quantised, const QuantPlan& plan,
                                  std::span<const TensorMap> runs, double least,
                                  const Context& context) {
  std::vector<std::string> names;
  for (const BiasLayer& layer : find_bias_layers(model, plan)) names.push_back(layer.output);
  SessionOptions options;
  options.taps = names;
  Session expected(model, options, context);
  Session actual(quantised, options, context);
  std::map<std::string, std::pair<double, double>> sums;  // signal, noise
  const auto feeds = [&](std::size_t i) { return runs[i]; };
  exec::RunsAhead wanted(expected, runs.size(), feeds, names);
  exec::RunsAhead made(actual, runs.size(), feeds, names);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    context.check_cancelled();
    const TensorMap want = wanted.next();
    const TensorMap got = made.next();
    for (const std::string& name : names) {
      const std::vector<float> a = to_float(want.at(name));
      const std::vector<float> b = to_float(got.at(name));
      auto& [signal, noise] = sums[name];
      for (std::size_t i = 0; i < a.size(); ++i) {
        signal += static_cast<double>(a[i]) * static_cast<double>(a[i]);
        noise += std::pow(static_cast<double>(b[i]) - static_cast<double>(a[i]), 2);
      }
    }
  }
  std::set<std::string> poor;
  for (const auto& [name, sum] : sums) {
    if (sum.second > sum.first * std::pow(10.0, -least / 10)) poor.insert(name);
  }
  return poor;
}

}  // namespace quench::tune
