// SPDX-License-Identifier: Apache-2.0
// GPTQ for the weights of few bits, or for all when it is asked for.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/memory.h"
#include "quant/weight.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

/// More samples change the sums of products little.
constexpr std::int64_t kSamples = 128;

using Moments = std::vector<std::optional<InputMoments>>;
using Layers = std::vector<std::optional<GptqLayer>>;

/// What the inputs of layers look like; nothing for a layer that GPTQ does not know.
Moments moments_of(const State& state, const Layers& layers) {
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

/// The layers in parts, so that the sums of each fit into memory: one pass over the samples each.
std::vector<Layers> in_parts(const State& state, const Layers& layers) {
  constexpr std::uint64_t kShare = 4;  // of memory
  const std::uint64_t most = memory_limit(state.context) / kShare;
  std::vector<Layers> parts;
  std::uint64_t taken = most;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i] || layers[i]->matrix.groups == 0) continue;
    const LayerMatrix& matrix = layers[i]->matrix;
    const auto bytes = static_cast<std::uint64_t>(matrix.groups * matrix.columns * matrix.columns) *
                       sizeof(double);
    if (parts.empty() || taken + bytes > most) {
      parts.emplace_back(layers.size());
      taken = 0;
    }
    parts.back()[i] = layers[i];
    taken += bytes;
  }
  return parts;
}

/// As many passes as there are parts: then weights are rounded while their sums are at hand.
void round_stored_now(State& state, const std::vector<Layers>& parts) {
  const int threads = state.context.num_threads();
  state.rounded.resize(state.stored.size());
  for (const Layers& part : parts) {
    const Moments moments = moments_of(state, part);
    for (std::size_t i = 0; i < moments.size(); ++i) {
      if (!moments[i]) continue;
      const Tensor& weight = weight_of(state.model, state.stored[i]);
      const quant::QuantWeight base = quantize_named(state.stored[i], weight, threads);
      state.rounded[i] = gptq(weight, base, *moments[i], threads);
      if (state.rounded[i]) state.rounded[i]->integers = state.kept(state.rounded[i]->integers);
    }
  }
}

/// Weights that are stored outside of the plan are rounded when they are written, one by one.
void look_at_stored(State& state) {
  Layers layers(state.stored.size());
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
  const std::vector<Layers> parts = in_parts(state, layers);
  if (parts.size() > 1) {
    round_stored_now(state, parts);
  } else {
    state.moments = moments_of(state, layers);
  }
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

/// The floats of a weight; those of one that is not in memory are not there either.
Tensor floats_of(const State& state, quant::QuantWeight weight, const Tensor& real) {
  const int threads = state.context.num_threads();
  if (!real.is_stored()) return quant::dequantize_weight(weight, threads);
  weight.integers = state.kept(std::move(weight.integers));
  return Tensor::made(DType::Float32, real.shape(), [weight = std::move(weight), threads] {
    return quant::dequantize_weight(weight, threads);
  });
}

/// Gives the model the better integers of the layers that have some; how many that are.
std::size_t round_part(const State& state, const Layers& layers, Model& tuned) {
  const Moments moments = moments_of(state, layers);
  const int threads = state.context.num_threads();
  std::size_t count = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!moments[i]) continue;
    const WeightPlan& weight = state.plan.weights[i];
    const ValueId id = layers[i]->site.value_in(state.model.graph);
    const Tensor& real = *state.model.graph.constant(id);
    const quant::QuantWeight base = rounded(real, state.solution.weights.at(weight.key()), threads);
    auto better = gptq(real, base, *moments[i], threads);
    if (!better) continue;
    Node& node = node_called(tuned.graph, weight.node);
    node.inputs[1] = tuned.graph.add_constant(state.model.graph[id].name + "/gptq",
                                              floats_of(state, std::move(*better), real));
    ++count;
  }
  return count;
}

/// The weights of the plan become the floats that their better integers stand for: rounding to the
/// nearest then gives these integers.
void round_planned(State& state) {
  Layers layers(state.plan.weights.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const WeightPlan& weight = state.plan.weights[i];
    const bool wanted = state.options.weight.gptq || weight.spec.bits <= kGptqBits;
    if (!wanted || weight.input != 1 || !weight.spec.symmetric || !weight.spec.is_signed) continue;
    layers[i] = gptq_layer(state.model.graph, {.node = weight.node, .input = 1});
  }
  if (std::ranges::none_of(layers, &std::optional<GptqLayer>::has_value)) return;
  Model tuned = state.to_quantize();
  std::size_t count = 0;
  for (const Layers& part : in_parts(state, layers)) count += round_part(state, part, tuned);
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
