// SPDX-License-Identifier: Apache-2.0
// Finds the most quantised model that meets a metric: bisection over the ranking, then refinement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/simulator.h"

namespace quench::analyze {

/// What evaluating one choice found.
struct Verdict {
  bool meets = false;
  double value = 0;
  double passes = 1;  ///< passes over the evaluation data that it took; less when it stopped early
  bool whole = true;  ///< evaluated on all of them
};

/// How many samples a choice is evaluated on.
enum class Effort {
  Clear,  ///< until the answer is clear; the value is then the most that was still possible
  All,
};
using EvaluateChoice = std::function<Verdict(const Choice& choice, Effort effort)>;

/// What must be met, and what is known before the search.
struct TargetGoal {
  double at_least = 0;
  bool higher_is_better = true;
  double float_value = 0;      ///< with nothing quantised
  double quantized_value = 0;  ///< with everything quantised, which is not enough
  bool is_share = false;       ///< percent of samples
};

/// What the search found.
struct TargetSearch {
  bool met = false;
  Choice choice;
  double value = 0;
  double passes = 0;
  std::int64_t tried = 0;
  std::int64_t steps = 0;  ///< how far along the ladder: what going one by one would take
};

/// A layer, and how much noise it alone brings to the outputs.
struct RankedLayer {
  std::string name;
  double noise = 0;
};

/// Choices in the order in which they give more up: the k-th leaves the k worst layers in float.
/// With `raise_bits` their weights first get that many bits, all of them, before any is left in
/// float.
class Ladder {
 public:
  Ladder(std::vector<RankedLayer> worst_first, int raise_bits)
      : layers_(std::move(worst_first)), raise_bits_(raise_bits) {}
  std::size_t last() const noexcept { return layers_.size() * (raise_bits_ > 0 ? 2 : 1); }
  Choice at(std::size_t step) const;
  /// The noise that is left: errors of layers add up, nearly.
  double noise(std::size_t step) const;

 private:
  std::vector<RankedLayer> layers_;
  int raise_bits_ = 0;
};

/// The first step that meets: what is lost grows with the noise, so two known steps tell where to
/// look between them. Then layers are given back. Both only while the passes stay below a third of
/// what one by one would take, or nothing is found yet.
TargetSearch search(const Ladder& ladder, const TargetGoal& goal, const EvaluateChoice& evaluate);

/// The first step that meets, found by trying one after the other on all samples.
TargetSearch search_one_by_one(const Ladder& ladder, const EvaluateChoice& evaluate);

}  // namespace quench::analyze
