// SPDX-License-Identifier: Apache-2.0
// Looks for the first step of a ranking that is good enough.
#include "analyze/target.h"

#include <algorithm>
#include <cmath>
#include <set>

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

/// A step that was evaluated.
struct Known {
  std::size_t step = 0;
  double lack = 0;    ///< how far it is from enough; not above 0 where it is
  bool whole = true;  ///< by all samples; otherwise it lacks more than that
};

/// The search's state: what was asked, and the best that was found.
class Searcher {
 public:
  Searcher(const Ladder& ladder, const TargetGoal& goal, const EvaluateChoice& evaluate)
      : ladder_(ladder), goal_(goal), evaluate_(evaluate) {}

  TargetSearch run() {
    Known low{.step = 0, .lack = lack(goal_.quantized_value)};
    Known high{.step = ladder_.last(), .lack = lack(goal_.float_value)};
    int same_side = 0;  // answers in a row that moved the same end
    while (high.step - low.step > 1) {
      const bool lines_help = low.whole && high.whole && std::abs(same_side) < 2;
      const Known next = look(lines_help ? between(low, high) : middle(low, high));
      const bool meets = next.lack <= 0;
      same_side = meets ? std::max(same_side, 0) + 1 : std::min(same_side, 0) - 1;
      (meets ? high : low) = next;
    }
    // What passed on a part of the samples must pass on all of them.
    while (!confirmed(high.step) && high.step < ladder_.last()) ++high.step;
    result_.steps = static_cast<std::int64_t>(high.step);
    if (result_.met && goal_.is_share) look_below(high.step);
    if (result_.met) refine(low.step + 1);
    return result_;
  }

 private:
  double lack(double value) const {
    return goal_.higher_is_better ? goal_.at_least - value : value - goal_.at_least;
  }

  /// Whether another pass keeps below a part of what one by one takes to get to a step.
  bool affordable(std::size_t step, double part) const {
    return !result_.met || part * (result_.passes + 1) <= static_cast<double>(step);
  }

  static std::size_t middle(const Known& low, const Known& high) {
    return low.step + (high.step - low.step) / 2;
  }

  /// The first step whose noise is as low as a line through both ends asks for.
  std::size_t between(const Known& low, const Known& high) const {
    const double share = low.lack / (low.lack - high.lack);
    if (!std::isfinite(share)) return middle(low, high);
    const double from = ladder_.noise(low.step);
    const double wanted = from + share * (ladder_.noise(high.step) - from);
    std::size_t step = low.step + 1;
    while (step + 1 < high.step && ladder_.noise(step) > wanted) ++step;
    return step;
  }

  Known look(std::size_t step) {
    asked_.insert(step);
    const Verdict verdict = ask(ladder_.at(step), Effort::Clear);
    if (verdict.meets && verdict.whole) keep(ladder_.at(step), verdict.value, step);
    // A guess may lie on the other side by rounding: the answer counts.
    const double found = lack(verdict.value);
    return {.step = step,
            .lack = verdict.meets ? std::min(found, 0.0) : std::max(found, 1e-9),
            .whole = verdict.whole};
  }

  Verdict ask(const Choice& choice, Effort effort) {
    const Verdict verdict = evaluate_(choice, effort);
    ++result_.tried;
    result_.passes += verdict.passes;
    const bool better = result_.tried == 1 || lack(verdict.value) < lack(result_.value);
    if (!result_.met && better && verdict.whole) {
      result_.value = verdict.value;
      result_.choice = choice;
    }
    return verdict;
  }

  /// A share of few samples does not fall steadily along the ladder: the first step that meets may
  /// lie below. Such a step is mostly refused after a few samples.
  void look_below(std::size_t step) {
    for (std::size_t lower = 1; lower < step && lower < kept_step_; ++lower) {
      if (asked_.contains(lower)) continue;
      const Known known = look(lower);
      if (known.lack <= 0 && known.whole) return;
    }
  }

  bool confirmed(std::size_t step) {
    if (result_.met && kept_step_ == step) return true;
    const Verdict verdict = ask(ladder_.at(step), Effort::All);
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
  void refine(std::size_t first) {
    for (std::size_t step = kept_step_; step > 1 && affordable(first, 4); --step) {
      const Choice less = without(result_.choice, step - 1);
      if (less == result_.choice) continue;
      const Verdict verdict = ask(less, Effort::Clear);
      if (!verdict.meets || !verdict.whole) continue;
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
  const TargetGoal& goal_;
  const EvaluateChoice& evaluate_;
  TargetSearch result_;
  std::set<std::size_t> asked_;
  std::size_t kept_step_ = 0;
};

}  // namespace

Choice Ladder::at(std::size_t step) const {
  Choice choice;
  std::size_t in_float = std::min(step, layers_.size());
  if (raise_bits_ > 0) {
    const std::size_t raised = std::min(step, layers_.size());
    in_float = step - raised;
    for (std::size_t i = 0; i < raised; ++i) choice.weight_bits[layers_[i].name] = raise_bits_;
  }
  for (std::size_t i = 0; i < std::min(in_float, layers_.size()); ++i) {
    choice.in_float.insert(layers_[i].name);
    choice.weight_bits.erase(layers_[i].name);
  }
  return choice;
}

double Ladder::noise(std::size_t step) const {
  // What more bits leave of a layer's noise is not known: by the number of steps then.
  if (raise_bits_ > 0) return static_cast<double>(last() - step);
  double sum = 0;
  for (std::size_t i = step; i < layers_.size(); ++i) sum += layers_[i].noise;
  return sum;
}

TargetSearch search(const Ladder& ladder, const TargetGoal& goal, const EvaluateChoice& evaluate) {
  return Searcher(ladder, goal, evaluate).run();
}

TargetSearch search_one_by_one(const Ladder& ladder, const EvaluateChoice& evaluate) {
  TargetSearch result;
  while (!result.met && result.steps < static_cast<std::int64_t>(ladder.last())) {
    const Choice choice = ladder.at(static_cast<std::size_t>(++result.steps));
    const Verdict verdict = evaluate(choice, Effort::All);
    ++result.tried;
    result.passes += verdict.passes;
    if (!verdict.meets && result.tried > 1 && verdict.value <= result.value) continue;
    result.met = verdict.meets;
    result.value = verdict.value;
    result.choice = choice;
  }
  return result;
}

}  // namespace analyze
}  // namespace quench
