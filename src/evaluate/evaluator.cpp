// SPDX-License-Identifier: Apache-2.0
// Runs models on samples and scores them.
#include "evaluate/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/share.h"
#include "evaluate/feeds.h"
#include "evaluate/scoring.h"
#include "metrics/metric.h"

namespace quench::evaluation {
namespace {

OutputError compare(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0;
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto x = static_cast<double>(actual[i]);
    const auto y = static_cast<double>(expected[i]);
    error += (x - y) * (x - y);
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  return {.relative = bb > 0 ? error / bb : 0,
          .cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb)
                    : aa == bb       ? 1.0
                                     : 0.0};
}

}  // namespace

Evaluator::Evaluator(const Model& reference, EvalData data, const Context& context)
    : context_(&context), data_(std::move(data)), reference_(reference) {
  run_reference();
}

void Evaluator::run_reference() {
  expected_.clear();
  outputs_.clear();
  if (data_->batches() == 0) return;
  Session session(*reference_, {}, *context_);
  exec::RunsAhead made = runs(session);
  for (std::int64_t i = 0; i < data_->batches(); ++i) expected_.push_back(made.next());
  for (const Value& output : session.outputs()) {
    if (info(output.type.dtype).is_float) outputs_.push_back(output.name);
  }
}

std::vector<TensorMap> Evaluator::inputs(std::size_t most) const {
  std::vector<TensorMap> runs;
  for (std::int64_t i = 0; data_ && i < data_->batches() && runs.size() < most; ++i) {
    runs.push_back(data_->batch(i)->inputs);
  }
  return runs;
}

void Evaluator::watch_peaks() {
  for (const std::string& output : outputs_) {
    if (const auto peaks = metrics::find_peaks(expected_, output)) peaks_[output] = *peaks;
  }
}

std::int64_t Evaluator::least_values() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::string& output : outputs_) {
    std::int64_t count = 0;
    for (const TensorMap& run : expected_) count += run.at(output).size();
    least = std::min(least, count);
  }
  return least;
}

exec::RunsAhead Evaluator::runs(Session& session, std::vector<std::string> wanted) const {
  const auto feeds = [this](std::size_t i) {
    return data_->batch(static_cast<std::int64_t>(i))->inputs;
  };
  return {session, static_cast<std::size_t>(data_->batches()), feeds, std::move(wanted)};
}

/// A batch whose outputs do not tell its samples apart counts as one sample.
TensorMap Evaluator::next(exec::RunsAhead& runs, std::int64_t index) const {
  TensorMap got = runs.next();
  for (const std::string& output : outputs_) {
    const Tensor& want = expected_[static_cast<std::size_t>(index)].at(output);
    Tensor& actual = got.at(output);
    actual = metrics::at_length_of(actual, want);
    metrics::expect_same_size(actual, want);
  }
  return got;
}

void Evaluator::add_noise(std::int64_t index, const TensorMap& got,
                          std::vector<metrics::OutputNoise>& noise) const {
  const TensorMap& expected = expected_[static_cast<std::size_t>(index)];
  const std::int64_t samples = data_->batch(index)->samples;
  const bool alike = std::ranges::all_of(outputs_, [&](const std::string& output) {
    const Shape& shape = expected.at(output).shape();
    return !shape.empty() && shape[0] == samples;
  });
  const auto parts = static_cast<std::size_t>(alike ? samples : 1);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::vector<float> want = to_float(expected.at(outputs_[i]));
    const std::vector<float> have = to_float(got.at(outputs_[i]));
    const auto peaks = peaks_.find(outputs_[i]);
    const std::size_t size = want.size() / parts;
    for (std::size_t part = 0; part < parts; ++part) {
      metrics::SampleNoise& sum = noise[i].emplace_back();
      for (std::size_t k = part * size; k < (part + 1) * size; ++k) {
        const auto value = static_cast<double>(want[k]);
        const double error = static_cast<double>(have[k]) - value;
        sum.signal += value * value;
        sum.noise += error * error;
        if (peaks == peaks_.end()) continue;
        const double distance = std::abs(value - static_cast<double>(peaks->second.usual));
        if (!(distance >= static_cast<double>(peaks->second.distance))) continue;
        sum.peak_signal += distance * distance;
        sum.peak_noise += error * error;
      }
    }
  }
}

std::vector<OutputScores> Evaluator::scores(const Model& model,
                                            std::vector<metrics::OutputNoise>* noise) const {
  if (!able()) return {};
  if (noise != nullptr) noise->assign(outputs_.size(), {});
  Session session(model, {}, *context_);
  std::vector<ScoreCard> cards;
  for (const std::string& output : outputs_) {
    cards.push_back(ScoreCard::fitting(output));
  }
  std::map<std::string, metrics::PeakScore> peaks;
  for (const auto& [output, found] : peaks_) peaks.emplace(output, found);
  exec::RunsAhead made = runs(session);
  for (std::int64_t i = 0; i < data_->batches(); ++i) {
    const auto batch = data_->batch(i);
    const TensorMap got = next(made, i);
    const TensorMap& want = expected_[static_cast<std::size_t>(i)];
    if (noise != nullptr) add_noise(i, got, *noise);
    for (auto& [output, score] : peaks) score.add(got.at(output), want.at(output));
    for (ScoreCard& card : cards) {
      card.add(real_rows(got.at(card.output()), batch->samples, batch->rows),
               real_rows(want.at(card.output()), batch->samples, batch->rows));
    }
    context_->report("evaluating", i + 1, data_->batches());
  }
  std::vector<OutputScores> scores;
  for (const ScoreCard& card : cards) {
    scores.push_back(card.scores());
    const auto peak = peaks.find(card.output());
    if (peak != peaks.end()) scores.back().scores["peak_sqnr"] = peak->second.value();
  }
  return scores;
}

OutputError Evaluator::error(const Model& model) const {
  Session session(model, {}, *context_);
  OutputError result;
  exec::RunsAhead made = runs(session);
  for (std::int64_t i = 0; i < data_->batches(); ++i) {
    const TensorMap actual = next(made, i);
    for (const std::string& output : outputs_) {
      const TensorMap& want = expected_[static_cast<std::size_t>(i)];
      const OutputError part = compare(to_float(actual.at(output)), to_float(want.at(output)));
      result.relative += part.relative;
      result.cosine = std::min(result.cosine, part.cosine);
    }
  }
  return result;
}

std::vector<SampleScore> Evaluator::samples(const Model& model, const SampleMetric& metric,
                                            const GoOn& go_on) const {
  return sharers(*context_) != nullptr ? samples_together(model, metric, go_on)
                                       : samples_here(model, metric, go_on);
}

std::vector<SampleScore> Evaluator::samples_together(const Model& model, const SampleMetric& metric,
                                                     const GoOn& go_on) const {
  Ranks& ranks = *context_->ranks;
  Session session(model, {}, *context_);
  std::vector<SampleScore> scores;
  const std::int64_t all = data_->batches();
  // Who may stop early looks after each batch: few are run that are not looked at.
  const std::int64_t wave = go_on ? ranks.size() : std::max<std::int64_t>(all, 1);
  for (std::int64_t first = 0; first < all; first += wave) {
    const std::int64_t count = std::min(wave, all - first);
    const auto parts = spread(ranks, "scores", count, [&](std::int64_t i) {
      const auto batch = data_->batch(first + i);
      std::vector<SampleScore> own;
      metric.add(*batch, session.run(batch->inputs, metric.outputs()),
                 expected_[static_cast<std::size_t>(first + i)], own);
      Packer packer;
      packer.put_all(own);
      return packer.take();
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const auto part = Unpacker(parts[static_cast<std::size_t>(i)]).all<SampleScore>();
      scores.insert(scores.end(), part.begin(), part.end());
      if (first + i + 1 < all && go_on && !go_on(scores)) return scores;
    }
  }
  return scores;
}

std::vector<SampleScore> Evaluator::samples_here(const Model& model, const SampleMetric& metric,
                                                 const GoOn& go_on) const {
  Session session(model, {}, *context_);
  std::vector<SampleScore> scores;
  exec::RunsAhead made = runs(session, metric.outputs());
  for (std::int64_t i = 0; i < data_->batches(); ++i) {
    const auto batch = data_->batch(i);
    metric.add(*batch, made.next(), expected_[static_cast<std::size_t>(i)], scores);
    if (i + 1 < data_->batches() && go_on && !go_on(scores)) break;
  }
  return scores;
}

std::vector<SampleScore> Evaluator::own_samples(const SampleMetric& metric) const {
  std::vector<SampleScore> scores;
  for (std::int64_t i = 0; i < data_->batches(); ++i) {
    const TensorMap& own = expected_[static_cast<std::size_t>(i)];
    metric.add(*data_->batch(i), own, own, scores);
  }
  return scores;
}

void Evaluator::set_order(std::vector<std::int64_t> order) {
  data_->set_order(std::move(order));
  run_reference();
}

double worst_sqnr(const std::vector<OutputScores>& outputs) {
  double worst = std::numeric_limits<double>::infinity();
  for (const OutputScores& each : outputs) {
    const double value = each.scores.at("sqnr");
    if (!std::isnan(value)) worst = std::min(worst, value);
  }
  return worst;
}

}  // namespace quench::evaluation
