// SPDX-License-Identifier: Apache-2.0
// Judging by samples, as many as it takes.
#include "pipeline/jury.h"

#include <cmath>

#include "base/format.h"

namespace quench {
namespace {

using analyze::Choice;
using analyze::Effort;
using analyze::SampleScore;
using analyze::Verdict;

/// Samples that a choice is judged by before the rest may be guessed.
constexpr std::size_t kFirstLook = 16;
/// Standard errors from the target at which the answer is clear: what passes is checked on all
/// samples in the end, what fails costs at most a layer more.
constexpr double kClear = 2.5;
/// In dB: two runs of one model differ in the order of sums, no more.
constexpr double kSame = 60;

}  // namespace

Jury::Jury(Analysis& analysis, double at_least, const Context& context)
    : analysis_(analysis), at_least_(at_least), context_(context) {
  if (analysis_.eval) return;
  analyze::SensitivityJob job{.simulator = *analysis_.simulator,
                              .data = *analysis_.data,
                              .scorer = *analysis_.scorer,
                              .context = context_,
                              .scores = {},
                              .checkpoint = {}};
  expected_ = analyze::float_outputs(job);
  for (std::int64_t i = 0; i < analysis_.data->batches(); ++i) {
    const TensorMap& own = expected_[static_cast<std::size_t>(i)];
    analysis_.scorer->add(*analysis_.data->batch(i), own, own, float_scores_);
  }
}

bool Jury::higher_is_better() const {
  return analysis_.eval || analysis_.scorer->higher_is_better();
}

bool Jury::enough(double value) const {
  return higher_is_better() ? value >= at_least_ : value <= at_least_;
}

double Jury::float_value() {
  if (analysis_.eval) return analysis_.eval(analysis_.simulator->model());
  return analysis_.scorer->value(float_scores_);
}

Verdict Jury::judge(const Choice& choice, Effort effort) {
  const Verdict verdict = judge_model(analysis_.simulator->quantized(choice), effort);
  context_.info(
      format("analyze: {} layers in float, {} with more bits: {} on {:.2f} of the samples",
             choice.in_float.size(), choice.weight_bits.size(), verdict.value, verdict.passes));
  return verdict;
}

Verdict Jury::judge_file(const std::string& path, const Choice& choice, double known) {
  Model model = load(path);
  if (!analysis_.eval && same_outputs(model, choice)) {
    const auto share = static_cast<double>(analysis_.data->batch(0)->samples) /
                       static_cast<double>(analysis_.data->size());
    return {.meets = enough(known), .value = known, .passes = share};
  }
  return judge_model(std::move(model), Effort::All);
}

Verdict Jury::judge_model(Model model, Effort effort) {
  context_.check_cancelled();
  context_.report("searching", ++asked_, 0);
  if (analysis_.eval) {
    const double value = analysis_.eval(model);
    return {.meets = enough(value), .value = value};
  }
  Session session(std::move(model), {}, context_);
  std::vector<SampleScore> scores;
  const std::int64_t batches = analysis_.data->batches();
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto batch = analysis_.data->batch(i);
    analysis_.scorer->add(*batch, session.run(batch->inputs, analysis_.scorer->outputs()),
                          expected_[static_cast<std::size_t>(i)], scores);
    const bool may_stop = effort == Effort::Clear && analysis_.scorer->is_share();
    if (!may_stop || scores.size() < kFirstLook || i + 1 == batches) continue;
    const auto [value, spread] = guess(scores);
    // What meets must be seen whole in the end: near the end it may as well be now.
    const bool meets = value > at_least_;
    if (std::abs(value - at_least_) <= spread ||
        (meets && 2 * scores.size() > float_scores_.size()))
      continue;
    return {
        .meets = meets,
        .value = value,
        .passes = static_cast<double>(scores.size()) / static_cast<double>(float_scores_.size()),
        .whole = false};
  }
  const double value = analysis_.scorer->value(scores);
  return {.meets = enough(value), .value = value};
}

/// Both models see the same samples, so the difference between them varies far less than either.
Jury::Guess Jury::guess(const std::vector<SampleScore>& scores) const {
  const auto seen = static_cast<double>(scores.size());
  const auto all = static_cast<double>(float_scores_.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double difference = (scores[i].metric - float_scores_[i].metric) / 100;
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / seen;
  // Samples that all agree still say nothing about one in so many; none is drawn twice.
  const double variance = std::max(squares / seen - mean * mean, 1 / seen);
  return {.value = analysis_.scorer->value(float_scores_) + 100 * mean,
          .spread = 100 * kClear * std::sqrt(variance / seen * (1 - seen / all))};
}

bool Jury::same_outputs(const Model& model, const Choice& choice) {
  const std::vector<std::string>& outputs = analysis_.scorer->outputs();
  const auto batch = analysis_.data->batch(0);
  Session written(model, {}, context_);
  Session simulated(analysis_.simulator->quantized(choice), {}, context_);
  std::vector<SampleScore> scores;
  analysis_.scorer->add(*batch, written.run(batch->inputs, outputs),
                        simulated.run(batch->inputs, outputs), scores);
  return analyze::Scorer::sqnr(scores) > kSame;
}

}  // namespace quench
