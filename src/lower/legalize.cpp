// SPDX-License-Identifier: Apache-2.0
// Scales as kernels need them: inside the bounds of absorbed activations and wide enough for
// int32 biases.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "lower/hard_gate.h"
#include "lower/params.h"
#include "quench/lower.h"

namespace quench {
namespace lower {

const QuantParams& value_params(const QuantPlan& plan, const QuantSolution& solution,
                                const std::string& value) {
  const auto own = solution.values.find(value);
  if (own != solution.values.end()) return own->second;
  const auto planned = plan.values.find(value);
  if (planned != plan.values.end() && planned->second.kind == ValuePlan::Kind::SharedWith) {
    const auto shared = solution.values.find(planned->second.source);
    if (shared != solution.values.end()) return shared->second;
  }
  fail(ErrorKind::Internal, "the plan gives value '{}' a scale, but none was found for it", value);
}

const QuantParams& weight_params(const QuantSolution& solution, const WeightKey& weight) {
  const auto found = solution.weights.find(weight);
  if (found != solution.weights.end()) return found->second;
  fail(ErrorKind::Internal,
       "the plan gives input {} of the node that makes '{}' a scale, but none was found for it",
       weight.second, weight.first);
}

bool has_params(const QuantPlan& plan, const std::string& value) {
  const auto found = plan.values.find(value);
  return found != plan.values.end() && found->second.kind != ValuePlan::Kind::Float;
}

Tensor scale_tensor(const QuantParams& params) {
  Shape shape;
  if (params.spec.axis >= 0) shape.push_back(static_cast<std::int64_t>(params.scale.size()));
  return Tensor::of<float>(std::move(shape), params.scale);
}

Tensor zero_tensor(const QuantParams& params) {
  Shape shape;
  if (params.spec.axis >= 0) shape.push_back(static_cast<std::int64_t>(params.zero_point.size()));
  return convert(Tensor::of<std::int32_t>(std::move(shape), params.zero_point),
                 params.spec.dtype());
}

namespace {

/// Half of int32, so that the sum of products has the other half.
constexpr double kBiasLimit = 0.5 * std::numeric_limits<std::int32_t>::max();

/// The largest scale that keeps `steps` steps, multiplied in float as runtimes do, within `bound`.
float largest_scale(float scale, std::int64_t steps, double bound) {
  const auto limit = static_cast<float>(bound);
  const auto count = static_cast<float>(steps);
  if (steps <= 0 || !std::isfinite(limit) || scale * count <= limit) return scale;
  scale = limit / count;
  while (scale * count > limit) scale = std::nextafter(scale, 0.0F);
  return scale;
}

/// An activation is dropped only where the scale reaches no number that it would change.
void fit(const Range& bounds, QuantParams& params) {
  const QuantSpec& spec = params.spec;
  if (spec.symmetric || params.scale.size() != 1) return;
  if (bounds.min == 0 && params.zero_point[0] != spec.q_min()) {
    const double top = static_cast<double>(params.scale[0]) *
                       static_cast<double>(spec.q_max() - params.zero_point[0]);
    params = choose_params(spec, {Range{.min = 0, .max = std::min(top, bounds.max)}});
  }
  float& scale = params.scale[0];
  const std::int32_t zero = params.zero_point[0];
  scale = largest_scale(scale, spec.q_max() - zero, bounds.max);
  scale = largest_scale(scale, zero - spec.q_min(), -bounds.min);
}

/// The bias, one number a channel.
std::vector<float> bias_of(const Graph& graph, const Node& node, std::size_t channels) {
  std::vector<float> bias = to_float(*graph.constant(node.input(2)));
  if (bias.size() == 1) bias.resize(channels, bias[0]);
  return bias;
}

void make_room_for_bias(const Graph& graph, const Node& node, double input_scale,
                        QuantParams& weight) {
  const auto bias = bias_of(graph, node, weight.scale.size());
  for (std::size_t i = 0; i < bias.size(); ++i) {
    const double least = std::abs(static_cast<double>(bias[i])) / (input_scale * kBiasLimit);
    float& scale = weight.scale[weight.scale.size() == 1 ? 0 : i];
    // Up by a hair, so that rounding to float never asks for a second round.
    if (static_cast<double>(scale) < least) scale = static_cast<float>(least * 1.000001);
  }
}

}  // namespace
double squared_error(const Tensor& weight, const QuantParams& params) {
  const std::vector<float> before = to_float(weight);
  const std::vector<float> after = to_float(fake_quantize(weight, params));
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double error = static_cast<double>(before[i]) - static_cast<double>(after[i]);
    sum += error * error;
  }
  return sum;
}

}  // namespace lower

std::vector<CoarserLayer> legalize(const Model& model, const QuantPlan& plan,
                                   QuantSolution& solution) {
  using namespace lower;
  const Graph& graph = model.graph;
  for (const auto& [name, value] : plan.values) {
    const auto params = solution.values.find(name);
    if (value.bounds && params != solution.values.end()) fit(*value.bounds, params->second);
  }
  tie_hard_gates(graph, plan, solution);
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::SharedWith) continue;
    const auto source = solution.values.find(value.source);
    if (source != solution.values.end()) solution.values[name] = source->second;
  }
  for (const Node& node : graph.nodes) {
    if (!plan.of(graph, node).quantize_bias || node.input(2) == kNoValue) continue;
    const auto weight = solution.weights.find({output_name(graph, node), 1});
    if (weight == solution.weights.end()) continue;
    const QuantParams& input = value_params(plan, solution, graph[node.inputs[0]].name);
    make_room_for_bias(graph, node, static_cast<double>(input.scale[0]), weight->second);
  }
  return avoid_saturation(model, plan, solution);
}

}  // namespace quench
