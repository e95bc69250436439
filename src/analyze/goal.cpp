// SPDX-License-Identifier: Apache-2.0
// Models against a number: on all samples, or until it is clear that the number is missed.
#include "analyze/goal.h"

#include <utility>

#include "analyze/risk.h"
#include "base/format.h"

namespace quench::analyze {

using evaluation::SampleScore;

Goal::Goal(Evaluation& evaluation, Simulator& simulator, double at_least, const Context& context)
    : evaluation_(evaluation), simulator_(simulator), at_least_(at_least), context_(context) {
  if (!evaluation.eval) in_float_ = evaluation.evaluator->own_samples(*evaluation.metric);
}

double Goal::float_value() const {
  return evaluation_.eval ? evaluation_.eval(simulator_.model())
                          : evaluation_.metric->value(in_float_);
}

Verdict Goal::evaluate(const Choice& choice, Effort effort) {
  const Verdict verdict = evaluate(simulator_.quantized(choice), effort);
  note(choice, verdict);
  context_.info(
      format("analyze: {} layers in float, {} with more bits: {} on {:.2f} of the samples",
             choice.in_float.size(), choice.weight_bits.size(), verdict.value, verdict.passes));
  return verdict;
}

void Goal::note(const Choice& choice, const Verdict& verdict) {
  trials_.push_back({.in_float = choice.in_float.size(),
                     .more_bits = choice.weight_bits.size(),
                     .value = verdict.value});
}

Verdict Goal::evaluate(const Model& model, Effort effort) {
  context_.check_cancelled();
  context_.report("searching", ++asked_, 0);
  if (evaluation_.eval) {
    const double value = evaluation_.eval(model);
    return {.meets = enough(value), .value = value};
  }
  const evaluation::SampleMetric& metric = *evaluation_.metric;
  const bool may_stop = effort == Effort::Clear && is_share();
  if (may_stop) sort_samples();
  const auto possible = [&](const std::vector<SampleScore>& seen) {
    return enough(best_possible(seen));
  };
  const std::vector<SampleScore> scores = evaluation_.evaluator->samples(
      model, metric, may_stop ? possible : evaluation::Evaluator::GoOn());
  const auto share = static_cast<double>(scores.size()) / static_cast<double>(in_float_.size());
  const bool whole = scores.size() == in_float_.size();
  const double value = whole ? metric.value(scores) : best_possible(scores);
  return {.meets = whole && enough(value), .value = value, .passes = share, .whole = whole};
}

/// Puts the samples first that tell a bad model soonest.
void Goal::sort_samples() {
  if (std::exchange(sorted_, true)) return;
  evaluation::Evaluator& evaluator = *evaluation_.evaluator;
  std::vector<double> margins;
  for (std::int64_t i = 0; i < evaluator.data().batches(); ++i) {
    const auto batch = evaluator.data().batch(i);
    const Tensor& output =
        evaluator.expected()[static_cast<std::size_t>(i)].at(evaluation_.metric->outputs()[0]);
    for (std::int64_t sample = 0; sample < batch->samples; ++sample) {
      margins.push_back(margin(evaluation::row_of(output, sample, batch->rows)));
    }
  }
  evaluator.set_order(riskiest_first(in_float_, margins));
  in_float_ = evaluator.own_samples(*evaluation_.metric);
}

/// What a share comes to if every sample that was not seen yet is a hit.
double Goal::best_possible(const std::vector<SampleScore>& seen) const {
  double sum = 100.0 * static_cast<double>(in_float_.size() - seen.size());
  for (const SampleScore& each : seen) sum += each.metric;
  return sum / static_cast<double>(in_float_.size());
}

}  // namespace quench::analyze
