// SPDX-License-Identifier: Apache-2.0
// Runs models on held-out samples and scores them.
#include "pipeline/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/scoring.h"

namespace quench {
namespace {

constexpr std::int64_t kRun = 4;  ///< samples
constexpr std::size_t kFewRuns = 2;

}  // namespace

Judge::Judge(const Job& job, const Context& context)
    : Judge(job, {{.first = job.parts.calibrate, .count = job.parts.judge}}, context) {}

Judge::Judge(const Job& job, const std::vector<SampleRange>& samples, const Context& context)
    : context_(context) {
  if (!job.source) return;
  for (const SampleRange& range : samples) {
    for (TensorMap& run : read_runs(job, range, kRun)) {
      runs_.push_back(std::move(run));
    }
  }
  if (runs_.empty()) return;
  Session session(job.model, {}, context);
  for (const TensorMap& run : runs_) {
    context.check_cancelled();
    expected_.push_back(session.run(run));
  }
  for (const Value& output : session.outputs()) {
    if (info(output.type.dtype).is_float) outputs_.push_back(output.name);
  }
}

void Judge::watch_peaks() {
  for (const std::string& output : outputs_) {
    if (const auto peaks = metrics::find_peaks(expected_, output)) peaks_[output] = *peaks;
  }
}

std::vector<OutputScores> Judge::scores(const Model& model) const {
  if (!able()) return {};
  Session session(model, {}, context_);
  std::vector<ScoreCard> cards;
  for (const std::string& output : outputs_) {
    cards.emplace_back(output, std::vector<std::string>{"cosine", "sqnr", "agreement"});
  }
  std::map<std::string, metrics::PeakScore> peaks;
  for (const auto& [output, found] : peaks_) peaks.emplace(output, found);
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    context_.check_cancelled();
    const TensorMap got = session.run(runs_[i]);
    for (auto& [output, score] : peaks) score.add(got.at(output), expected_[i].at(output));
    for (ScoreCard& card : cards) {
      card.add(got.at(card.output()), expected_[i].at(card.output()));
    }
    context_.report("judging", static_cast<std::int64_t>(i + 1),
                    static_cast<std::int64_t>(runs_.size()));
  }
  std::vector<OutputScores> scores;
  for (const ScoreCard& card : cards) {
    scores.push_back(card.scores());
    const auto peak = peaks.find(card.output());
    if (peak != peaks.end()) scores.back().scores["peak_sqnr"] = peak->second.value();
  }
  return scores;
}

double worst_sqnr(const std::vector<OutputScores>& outputs) {
  double worst = std::numeric_limits<double>::infinity();
  for (const OutputScores& each : outputs) {
    const double value = each.scores.at("sqnr");
    if (!std::isnan(value)) worst = std::min(worst, value);
  }
  return worst;
}

std::span<const TensorMap> Judge::few_runs() const {
  return std::span<const TensorMap>(runs_).first(std::min(runs_.size(), kFewRuns));
}

}  // namespace quench
