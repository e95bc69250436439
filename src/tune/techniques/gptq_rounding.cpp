// SPDX-License-Identifier: Apache-2.0
// GPTQ for the weights of few bits, or for all when it is asked for.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "quant/weight.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

/// More samples change the sums of products little.
constexpr std::int64_t kSamples = 128;

using Moments = std::vector<std::optional<InputMoments>>;

/// What the inputs of layers look like; nothing for a layer that GPTQ does not know.
Moments moments_of(const State& state, const std::vector<std::optional<GptqLayer>>& layers) {
  Moments result(layers.size());
  std::set<std::string> taps;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i] || layers[i]->matrix.groups == 0) continue;
    taps.insert(layers[i]->input);
    result[i].emplace(*layers[i]);
  }
  if (taps.empty()) return result;
  const std::vector<std::string> names(taps.begin(), taps.end());
  Session session(state.model, {.taps = names, .integer = false}, state.context);
  const evaluation::SampleRange range = state.samples.first(kSamples);
  for (std::int64_t at = 0; at < range.count;) {
    state.context.check_cancelled();
    const std::int64_t count = std::min(state.options.batch, range.count - at);
    for (const TensorMap& run : state.samples.read({.first = at, .count = count}, count)) {
      const TensorMap values = session.run(run, names);
      for (auto& each : result) {
        if (!each) continue;
        each->add(state.model.graph, values.at(each->layer().input), state.context.num_threads());
      }
    }
    at += count;
    state.context.report("looking at inputs", at, range.count);
  }
  return result;
}

/// Weights that are stored outside of the plan are rounded when they are written, one by one.
void look_at_stored(State& state) {
  std::vector<std::optional<GptqLayer>> layers(state.stored.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const WeightItem& item = state.stored[i];
    if (item.dynamic || !(state.options.weight.gptq || item.spec.bits <= kGptqBits)) continue;
    const plan::WeightSite& site = item.sites.front();
    const quant::WeightSpec& spec = item.spec;
    const bool fits =
        spec.axis < 0 || spec.axis == (spec.block > 0 ? site.sum_axis : site.channel_axis);
    if (fits) layers[i] = gptq_layer(state.model.graph, site);
  }
  if (std::ranges::none_of(layers, &std::optional<GptqLayer>::has_value)) return;
  state.moments = moments_of(state, layers);
  state.report.calibration_samples = state.samples.first(kSamples).count;
}

/// A weight of the plan with its integers, as GPTQ takes them.
quant::QuantWeight rounded(const Tensor& weight, const QuantParams& params, int threads) {
  const QuantSpec& spec = params.spec;
  quant::QuantWeight result{.spec = {.bits = spec.bits, .symmetric = true, .axis = spec.axis},
                            .integers = {},
                            .scale = {}};
  const auto count = static_cast<std::int64_t>(params.scale.size());
  result.scale = Tensor::of<float>(spec.axis < 0 ? Shape{} : Shape{count},
                                   std::span<const float>(params.scale));
  const Tensor integers = convert(quantize_tensor(weight, params), DType::Int16);
  return quant::with_integers(weight, result, integers.data<std::int16_t>(), threads);
}

/// The weights of the plan become the floats that their better integers stand for: rounding to the
/// nearest then gives these integers.
void round_planned(State& state) {
  std::vector<std::optional<GptqLayer>> layers(state.plan.weights.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const WeightPlan& weight = state.plan.weights[i];
    const bool wanted = state.options.weight.gptq || weight.spec.bits <= kGptqBits;
    if (!wanted || weight.input != 1 || !weight.spec.symmetric || !weight.spec.is_signed) continue;
    layers[i] = gptq_layer(state.model.graph, {.node = weight.node, .input = 1});
  }
  if (std::ranges::none_of(layers, &std::optional<GptqLayer>::has_value)) return;
  const Moments moments = moments_of(state, layers);
  Model tuned = state.to_quantize();
  std::size_t count = 0;
  const int threads = state.context.num_threads();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!moments[i]) continue;
    const WeightPlan& weight = state.plan.weights[i];
    const ValueId id = layers[i]->site.value_in(state.model.graph);
    const Tensor& real = *state.model.graph.constant(id);
    const quant::QuantWeight base = rounded(real, state.solution.weights.at(weight.key()), threads);
    const auto better = gptq(real, base, *moments[i], threads);
    if (!better) continue;
    Node& node = node_called(tuned.graph, weight.node);
    node.inputs[1] = tuned.graph.add_constant(state.model.graph[id].name + "/gptq",
                                              quant::dequantize_weight(*better, threads));
    ++count;
  }
  if (count == 0) return;
  const auto sqnr = [&](const Model& model) {
    return state.validation.sqnr(insert_qdq(model, state.plan, state.solution));
  };
  if (state.validation.able() && sqnr(tuned) <= sqnr(state.to_quantize())) return;
  state.tuned = std::move(tuned);
  state.report.gptq_layers = count;
}

void round_weights(State& state) {
  if (!state.samples.any()) {
    if (state.options.weight.gptq) {
      fail(ErrorKind::Usage, "GPTQ needs samples to see what the layers' inputs look like: --data");
    }
    return;
  }
  if (!state.stored.empty()) look_at_stored(state);
  // Reconstruction learns the rounding itself.
  const TrainingOptions& training = state.options.training;
  const bool learned = training.adaround || training.reconstruct;
  if (!state.plan.weights.empty() && !learned) round_planned(state);
}

}  // namespace

Technique gptq_rounding() {
  return {
      .info = {.name = "gptq_rounding",
               .summary = "round weights of few bits so that their layers' outputs change least",
               .needs = "samples",
               .types = "full, weight"},
      .stage = Stage::Weights,
      .apply = round_weights};
}

}  // namespace quench::tune
