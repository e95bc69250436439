// SPDX-License-Identifier: Apache-2.0
// One layer at a time.
#include "analyze/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "analyze/partial.h"
#include "base/format.h"
#include "base/share.h"

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

/// Of the given layers, those that were not run on a batch yet.
std::vector<std::size_t> open_on(const SensitivityJob& job, std::int64_t batch,
                                 const std::vector<std::size_t>& layers) {
  std::vector<std::size_t> open;
  for (const std::size_t i : layers) {
    if (!has_batch(job, job.simulator.layers()[i].name, batch)) open.push_back(i);
  }
  return open;
}

/// Runs the given layers on one batch.
void score_batch(SensitivityJob& job, PartialRunner& runner, std::int64_t batch,
                 const std::vector<std::size_t>& layers) {
  const std::vector<std::size_t> open = open_on(job, batch, layers);
  if (open.empty()) return;
  const auto samples = job.evaluator.data().batch(batch);
  const TensorMap& expected = runner.set_batch(*samples);
  runner.run(open, [&](std::size_t i, const TensorMap& outputs) {
    job.metric.add(*samples, outputs, expected, job.scores[job.simulator.layers()[i].name]);
  });
  note(job);
}

/// Some layers on one batch: what ranks take from their queue.
struct Piece {
  std::int64_t batch = 0;
  std::vector<std::size_t> layers;
};

/// The batches from `first` on, in pieces: enough of them that no rank waits long for the last.
std::vector<Piece> pieces_of(const SensitivityJob& job, std::int64_t first, std::int64_t count,
                             const std::vector<std::size_t>& layers) {
  constexpr std::int64_t kPiecesEach = 4;
  const std::int64_t wanted = kPiecesEach * job.context.ranks->size();
  const std::int64_t parts = (wanted + count - 1) / count;
  std::vector<Piece> pieces;
  for (std::int64_t batch = first; batch < first + count; ++batch) {
    const std::vector<std::size_t> open = open_on(job, batch, layers);
    for (std::int64_t part = 0; part < parts; ++part) {
      const Share share = share_of(static_cast<std::int64_t>(open.size()), 1, part, parts);
      if (share.count == 0) continue;
      const auto begin = open.begin() + share.first;
      pieces.push_back({.batch = batch, .layers = {begin, begin + share.count}});
    }
  }
  return pieces;
}

/// Runs the given layers on some batches, shared by all ranks.
void score_together(SensitivityJob& job, PartialRunner& runner, std::int64_t first,
                    std::int64_t count, const std::vector<std::size_t>& layers) {
  const std::vector<Piece> pieces = pieces_of(job, first, count, layers);
  std::int64_t current = -1;
  std::shared_ptr<const evaluation::EvalBatch> samples;
  const TensorMap* expected = nullptr;
  const auto run = [&](std::int64_t index) {
    const Piece& piece = pieces[static_cast<std::size_t>(index)];
    if (piece.batch != current) {
      samples = job.evaluator.data().batch(piece.batch);
      expected = &runner.set_batch(*samples);
      current = piece.batch;
    }
    std::map<std::size_t, std::vector<SampleScore>> scores;
    runner.run(piece.layers, [&](std::size_t layer, const TensorMap& outputs) {
      job.metric.add(*samples, outputs, *expected, scores[layer]);
    });
    Packer packer;
    for (const std::size_t layer : piece.layers) packer.put_all(scores[layer]);
    return packer.take();
  };
  const auto results =
      spread(*job.context.ranks, "scores of layers", static_cast<std::int64_t>(pieces.size()), run);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Unpacker unpacker(results[i]);
    for (const std::size_t layer : pieces[i].layers) {
      const auto scores = unpacker.all<SampleScore>();
      auto& all = job.scores[job.simulator.layers()[layer].name];
      all.insert(all.end(), scores.begin(), scores.end());
    }
  }
  note(job);
}

/// Batches that ranks share between two checkpoints.
std::int64_t batches_at_once(const SensitivityJob& job) {
  constexpr std::int64_t kBatchesEach = 8;
  return kBatchesEach * job.context.ranks->size();
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
  const std::int64_t all = job.evaluator.data().batches();
  const std::int64_t step = sharers(job.context) != nullptr ? batches_at_once(job) : 1;
  for (std::int64_t batch = 0; batch < all; batch += step) {
    const std::int64_t count = std::min(step, all - batch);
    if (sharers(job.context) != nullptr) {
      score_together(job, runner, batch, count, layers);
    } else {
      score_batch(job, runner, batch, layers);
    }
    job.context.report("sensitivity", batch + count, all);
  }
}

void score_quickly(SensitivityJob& job, std::size_t worst) {
  PartialRunner runner(job.simulator, job.metric.outputs(), job.context);
  std::vector<std::size_t> active = all_of(job);
  const std::int64_t batches = job.evaluator.data().batches();
  double left = kQuickPart * static_cast<double>(batches) * static_cast<double>(active.size());
  for (std::int64_t batch = 0; batch < batches && !active.empty(); ++batch) {
    if (sharers(job.context) != nullptr) {
      score_together(job, runner, batch, 1, active);
    } else {
      score_batch(job, runner, batch, active);
    }
    left -= static_cast<double>(active.size());
    job.context.report("sensitivity", batch + 1, batches);
    const std::size_t seen = job.scores.at(job.simulator.layers()[active[0]].name).size();
    if (seen < kFirstLook) continue;
    active = undecided(job, active, worst);
    if (left < static_cast<double>(active.size())) break;
  }
}

void score_layers(const LayerScoring& job, const std::function<bool(std::size_t)>& has,
                  const std::function<std::vector<SampleScore>(std::size_t)>& score) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < job.layers.size(); ++i) {
    if (!has(i)) open.push_back(i);
  }
  const auto count = static_cast<std::int64_t>(open.size());
  const auto run = [&](std::int64_t i) {
    job.context.check_cancelled();
    job.context.report("sensitivity", i, count);
    return score(open[static_cast<std::size_t>(i)]);
  };
  const auto keep = [&](std::size_t i, std::vector<SampleScore> scores) {
    job.scores[job.layers[open[i]].name] = std::move(scores);
    if (job.checkpoint) job.checkpoint();
  };
  if (sharers(job.context) == nullptr) {
    for (std::size_t i = 0; i < open.size(); ++i) keep(i, run(static_cast<std::int64_t>(i)));
    return;
  }
  const auto results = spread(*job.context.ranks, "scores of layers", count, [&](std::int64_t i) {
    Packer packer;
    packer.put_all(run(i));
    return packer.take();
  });
  for (std::size_t i = 0; i < open.size(); ++i) {
    keep(i, Unpacker(results[i]).all<SampleScore>());
  }
}

void score_plainly(SensitivityJob& job, bool reverse) {
  const auto& layers = job.simulator.layers();
  const std::int64_t last = job.evaluator.data().batches() - 1;
  score_layers(
      {layers, job.scores, job.context, job.checkpoint},
      [&](std::size_t i) { return has_batch(job, layers[i].name, last); },
      [&](std::size_t i) {
        const std::string& name = layers[i].name;
        const Choice choice = reverse ? Choice{.in_float = {name}} : job.simulator.only(name);
        return job.evaluator.samples_here(job.simulator.quantized(choice), job.metric);
      });
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
