// SPDX-License-Identifier: Apache-2.0
// Judging by samples, as many as it takes.
#include "pipeline/jury.h"

#include <utility>

#include "analyze/risk.h"
#include "base/format.h"

namespace quench {
namespace {

using analyze::Choice;
using analyze::Effort;
using analyze::SampleScore;
using analyze::Verdict;

/// In dB: two runs of one model differ in the order of sums, no more.
constexpr double kSame = 60;

}  // namespace

Jury::Jury(Analysis& analysis, double at_least, const Context& context)
    : analysis_(analysis), at_least_(at_least), context_(context) {
  if (!analysis_.eval) run_float();
}

void Jury::run_float() {
  float_scores_.clear();
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

Verdict Jury::judge_written(const Model& model, const Choice& choice, double known) {
  if (!analysis_.eval && same_outputs(model, choice)) {
    const auto share = static_cast<double>(analysis_.data->batch(0)->samples) /
                       static_cast<double>(analysis_.data->size());
    return {.meets = enough(known), .value = known, .passes = share};
  }
  return judge_model(model, Effort::All);
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
  const bool may_stop = effort == Effort::Clear && analysis_.scorer->is_share();
  if (may_stop) sort_samples();
  const std::int64_t batches = analysis_.data->batches();
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto batch = analysis_.data->batch(i);
    analysis_.scorer->add(*batch, session.run(batch->inputs, analysis_.scorer->outputs()),
                          expected_[static_cast<std::size_t>(i)], scores);
    const double best = best_possible(scores);
    if (!may_stop || i + 1 == batches || enough(best)) continue;
    const auto seen = static_cast<double>(scores.size());
    return {.meets = false,
            .value = best,
            .passes = seen / static_cast<double>(float_scores_.size()),
            .whole = false};
  }
  const double value = analysis_.scorer->value(scores);
  return {.meets = enough(value), .value = value};
}

void Jury::sort_samples() {
  if (std::exchange(sorted_, true)) return;
  std::vector<double> margins;
  for (std::int64_t i = 0; i < analysis_.data->batches(); ++i) {
    const auto batch = analysis_.data->batch(i);
    const Tensor& output =
        expected_[static_cast<std::size_t>(i)].at(analysis_.scorer->outputs()[0]);
    for (std::int64_t sample = 0; sample < batch->samples; ++sample) {
      margins.push_back(analyze::margin(analyze::row_of(output, sample, batch->rows)));
    }
  }
  analysis_.data->set_order(analyze::riskiest_first(float_scores_, margins));
  run_float();
}

double Jury::best_possible(const std::vector<SampleScore>& seen) const {
  double sum = 100.0 * static_cast<double>(float_scores_.size() - seen.size());
  for (const SampleScore& each : seen) sum += each.metric;
  return sum / static_cast<double>(float_scores_.size());
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
