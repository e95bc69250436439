// SPDX-License-Identifier: Apache-2.0
// Bisection over a ranking.
#include "analyze/target.h"

#include <algorithm>
#include <cmath>

#include "quench/analysis.h"

namespace quench {

Confidence wilson(double percent, std::int64_t samples) {
  constexpr double kZ = 1.959964;  // 95 %, both sides
  if (samples < 1) return {.low = 0, .high = 100};
  const auto n = static_cast<double>(samples);
  const double p = std::clamp(percent / 100.0, 0.0, 1.0);
  const double middle = p + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  const double scale = 1 + kZ * kZ / n;
  return {.low = 100.0 * std::max(0.0, (middle - spread) / scale),
          .high = 100.0 * std::min(1.0, (middle + spread) / scale)};
}

namespace analyze {
namespace {

/// The search's state: what was asked, and the best that was found.
class Searcher {
 public:
  Searcher(const Ladder& ladder, const Judge& judge) : ladder_(ladder), judge_(judge) {}

  TargetSearch run() {
    std::size_t low = 0;  // fails
    std::size_t high = bracket(low);
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (meets(middle) ? high : low) = middle;
    }
    // What passed on a part of the samples must pass on all of them.
    while (high <= ladder_.last() && !confirmed(high)) ++high;
    result_.steps = static_cast<std::int64_t>(std::min(high, ladder_.last()));
    if (high <= ladder_.last()) refine();
    return result_;
  }

 private:
  /// The first of the doubling steps that meets; behind the last when none does.
  std::size_t bracket(std::size_t& low) {
    // One by one would be near its end there: start in the middle.
    std::size_t step = std::max<std::size_t>(1, ladder_.last() / 2);
    while (step < ladder_.last()) {
      if (meets(step)) return step;
      low = step;
      step += std::max<std::size_t>(1, (ladder_.last() - step) / 2);
    }
    return ladder_.last();
  }

  Verdict ask(const Choice& choice, bool whole) {
    const Verdict verdict = judge_(choice, whole);
    ++result_.tried;
    result_.passes += verdict.passes;
    if (!result_.met && (result_.tried == 1 || verdict.value > result_.value) && verdict.whole) {
      result_.value = verdict.value;
      result_.choice = choice;
    }
    return verdict;
  }

  bool meets(std::size_t step) {
    const Verdict verdict = ask(ladder_.at(step), false);
    if (verdict.meets && verdict.whole) keep(ladder_.at(step), verdict.value, step);
    return verdict.meets;
  }

  bool confirmed(std::size_t step) {
    if (result_.met && kept_step_ == step) return true;
    const Verdict verdict = ask(ladder_.at(step), true);
    if (verdict.meets) keep(ladder_.at(step), verdict.value, step);
    return verdict.meets;
  }

  void keep(const Choice& choice, double value, std::size_t step) {
    if (result_.met && step > kept_step_) return;
    result_.met = true;
    result_.choice = choice;
    result_.value = value;
    kept_step_ = step;
  }

  /// Gives layers back, those that cost least first.
  void refine() {
    const Choice found = result_.choice;
    for (std::size_t step = kept_step_; step > 1; --step) {
      if (result_.passes + 1 > static_cast<double>(result_.steps) / 3) return;
      const Choice less = without(result_.choice, step - 1);
      if (less == result_.choice) continue;
      const Verdict verdict = ask(less, true);
      if (!verdict.meets) continue;
      result_.choice = less;
      result_.value = verdict.value;
    }
  }

  /// `choice` without what step `step` of the ladder brought.
  Choice without(Choice choice, std::size_t step) const {
    const Choice before = ladder_.at(step - 1);
    const Choice after = ladder_.at(step);
    for (const std::string& layer : after.in_float) {
      if (!before.in_float.contains(layer)) choice.in_float.erase(layer);
    }
    for (const auto& [layer, bits] : after.weight_bits) {
      if (!before.weight_bits.contains(layer)) choice.weight_bits.erase(layer);
    }
    return choice;
  }

  const Ladder& ladder_;
  const Judge& judge_;
  TargetSearch result_;
  std::size_t kept_step_ = 0;
};

}  // namespace

Choice Ladder::at(std::size_t step) const {
  Choice choice;
  std::size_t in_float = std::min(step, layers_.size());
  if (raise_bits_ > 0) {
    const std::size_t raised = std::min(step, layers_.size());
    in_float = step - raised;
    for (std::size_t i = 0; i < raised; ++i) choice.weight_bits[layers_[i]] = raise_bits_;
  }
  for (std::size_t i = 0; i < std::min(in_float, layers_.size()); ++i) {
    choice.in_float.insert(layers_[i]);
    choice.weight_bits.erase(layers_[i]);
  }
  return choice;
}

TargetSearch search(const Ladder& ladder, const Judge& judge) {
  return Searcher(ladder, judge).run();
}

}  // namespace analyze
}  // namespace quench
