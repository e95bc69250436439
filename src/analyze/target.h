// SPDX-License-Identifier: Apache-2.0
// Finds the most quantised model that meets a metric: bisection over the ranking, then refinement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyze/simulator.h"

namespace quench::analyze {

/// What judging one choice found.
struct Verdict {
  bool meets = false;
  double value = 0;
  double passes = 1;  ///< passes over the evaluation data that it took; less when it stopped early
  bool whole = true;  ///< judged by all of them
};

/// Judges a choice; with `whole` by all samples, else it may stop when the answer is clear.
using Judge = std::function<Verdict(const Choice& choice, bool whole)>;

/// What the search found.
struct TargetSearch {
  bool met = false;
  Choice choice;
  double value = 0;
  double passes = 0;
  std::int64_t tried = 0;
  std::int64_t steps = 0;  ///< how far along the ladder: what going one by one would take
};

/// Choices in the order in which they give more up: the k-th leaves the k worst layers in float.
/// With `raise_bits` their weights first get that many bits, all of them, before any is left in
/// float.
class Ladder {
 public:
  Ladder(std::vector<std::string> worst_first, int raise_bits)
      : layers_(std::move(worst_first)), raise_bits_(raise_bits) {}
  std::size_t last() const noexcept { return layers_.size() * (raise_bits_ > 0 ? 2 : 1); }
  Choice at(std::size_t step) const;

 private:
  std::vector<std::string> layers_;
  int raise_bits_ = 0;
};

/// The first step that meets, found by doubling and bisection; then layers are given back while
/// the passes stay below a third of what one by one would take. Step 0 is known to fail.
TargetSearch search(const Ladder& ladder, const Judge& judge);

}  // namespace quench::analyze
