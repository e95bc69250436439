// SPDX-License-Identifier: Apache-2.0
// One layer at a time.
#include "analyze/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "analyze/partial.h"
#include "base/format.h"

namespace quench::analyze {
namespace {

/// Samples that every layer is evaluated by before any is decided.
constexpr std::size_t kFirstLook = 8;
/// Standard errors that two layers must be apart to be told apart.
constexpr double kSure = 3.0;
/// The part of all runs that a quick look may take: which of two layers that are nearly alike is
/// the worse would take all the others to tell.
constexpr double kQuickPart = 0.125;

void note(const SensitivityJob& job) {
  if (job.checkpoint) job.checkpoint();
}

bool has_batch(const SensitivityJob& job, const std::string& layer, std::int64_t batch) {
  const auto found = job.scores.find(layer);
  if (found == job.scores.end()) return false;
  return static_cast<std::int64_t>(found->second.size()) >=
         job.evaluator.data().samples_until(batch);
}

/// Runs the given layers on one batch.
void score_batch(SensitivityJob& job, PartialRunner& runner, std::int64_t batch,
                 const std::vector<std::size_t>& layers) {
  const auto& all = job.simulator.layers();
  std::vector<std::size_t> open;
  for (const std::size_t i : layers) {
    if (!has_batch(job, all[i].name, batch)) open.push_back(i);
  }
  if (open.empty()) return;
  const auto samples = job.evaluator.data().batch(batch);
  const TensorMap& expected = runner.set_batch(*samples);
  runner.run(open, [&](std::size_t i, const TensorMap& outputs) {
    job.metric.add(*samples, outputs, expected, job.scores[all[i].name]);
  });
  note(job);
}

std::vector<std::size_t> all_of(const SensitivityJob& job) {
  std::vector<std::size_t> layers(job.simulator.layers().size());
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = i;
  return layers;
}

/// How much worse than good a sample is: what layers are ordered by.
double harm(const SampleMetric& metric, const SampleScore& score) {
  if (metric.info().gather == Gather::Power) return score.noise;
  return metric.info().higher_is_better ? -score.metric : score.metric;
}

/// Standard errors by which `a` does more harm than `b`, over the samples that both have.
double apart(const SampleMetric& metric, const std::vector<SampleScore>& a,
             const std::vector<SampleScore>& b) {
  const std::size_t count = std::min(a.size(), b.size());
  if (count < 2) return 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = harm(metric, a[i]) - harm(metric, b[i]);
    sum += difference;
    squares += difference * difference;
  }
  const auto n = static_cast<double>(count);
  const double mean = sum / n;
  const double variance = std::max(0.0, squares / n - mean * mean) / (n - 1);
  return variance > 0 ? mean / std::sqrt(variance) : 0;
}

/// Layers that could still change sides of the border behind the `worst` worst.
std::vector<std::size_t> undecided(const SensitivityJob& job,
                                   const std::vector<std::size_t>& active, std::size_t worst) {
  const auto& layers = job.simulator.layers();
  const std::vector<LayerSensitivity> order = rank(layers, job.metric, job.scores, false);
  if (order.size() <= worst) return {};
  const auto& last_in = job.scores.at(order[worst - 1].layer);
  const auto& first_out = job.scores.at(order[worst].layer);
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i].layer] = i;
  std::vector<std::size_t> open;
  for (const std::size_t i : active) {
    const auto& own = job.scores.at(layers[i].name);
    const bool inside = place.at(layers[i].name) < worst;
    const double sure =
        inside ? apart(job.metric, own, first_out) : apart(job.metric, last_in, own);
    if (sure < kSure) open.push_back(i);
  }
  return open;
}

}  // namespace

void score_exactly(SensitivityJob& job) {
  PartialRunner runner(job.simulator, job.metric.outputs(), job.context);
  const std::vector<std::size_t> layers = all_of(job);
  for (std::int64_t batch = 0; batch < job.evaluator.data().batches(); ++batch) {
    score_batch(job, runner, batch, layers);
    job.context.report("sensitivity", batch + 1, job.evaluator.data().batches());
  }
}

void score_quickly(SensitivityJob& job, std::size_t worst) {
  PartialRunner runner(job.simulator, job.metric.outputs(), job.context);
  std::vector<std::size_t> active = all_of(job);
  const std::int64_t batches = job.evaluator.data().batches();
  double left = kQuickPart * static_cast<double>(batches) * static_cast<double>(active.size());
  for (std::int64_t batch = 0; batch < batches && !active.empty(); ++batch) {
    score_batch(job, runner, batch, active);
    left -= static_cast<double>(active.size());
    job.context.report("sensitivity", batch + 1, batches);
    const std::size_t seen = job.scores.at(job.simulator.layers()[active[0]].name).size();
    if (seen < kFirstLook) continue;
    active = undecided(job, active, worst);
    if (left < static_cast<double>(active.size())) break;
  }
}

void score_plainly(SensitivityJob& job, bool reverse) {
  std::int64_t done = 0;
  const auto& layers = job.simulator.layers();
  for (const Layer& layer : layers) {
    job.context.report("sensitivity", done++, static_cast<std::int64_t>(layers.size()));
    if (has_batch(job, layer.name, job.evaluator.data().batches() - 1)) continue;
    const Choice choice =
        reverse ? Choice{.in_float = {layer.name}} : job.simulator.only(layer.name);
    job.scores[layer.name] = job.evaluator.samples(job.simulator.quantized(choice), job.metric);
    note(job);
  }
}

std::vector<LayerSensitivity> rank(const std::vector<Layer>& layers, const SampleMetric& metric,
                                   const Scores& scores, bool reverse) {
  std::vector<LayerSensitivity> result;
  for (const Layer& layer : layers) {
    const auto found = scores.find(layer.name);
    if (found == scores.end()) continue;
    result.push_back({.layer = layer.name,
                      .op_type = layer.op_type,
                      .weight = layer.weight,
                      .metric = metric.value(found->second),
                      .sqnr = evaluation::sqnr_of(found->second),
                      .samples = static_cast<std::int64_t>(found->second.size())});
  }
  std::ranges::stable_sort(result, [&](const LayerSensitivity& a, const LayerSensitivity& b) {
    // With all but one quantised the layer that is best left out is the one that costs most.
    return reverse ? metric.worse(b.metric, b.sqnr, a.metric, a.sqnr)
                   : metric.worse(a.metric, a.sqnr, b.metric, b.sqnr);
  });
  return result;
}

}  // namespace quench::analyze
