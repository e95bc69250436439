// SPDX-License-Identifier: Apache-2.0
// Scores of samples that several ranks have run: as if one process had seen them in their order.
#pragma once

#include <vector>

#include "evaluate/scoring.h"
#include "quench/context.h"

namespace quench {

/// Hands outputs to score cards: at once, or with ranks all at the end, on every rank.
class SharedScores {
 public:
  /// The cards must stay where they are.
  SharedScores(std::vector<ScoreCard*> cards, const Context& context)
      : cards_(std::move(cards)), context_(context) {}

  void add(std::size_t card, const Tensor& actual, const Tensor& expected);
  /// Ends it; from the samples that this rank saw to those that all did.
  std::int64_t join(std::int64_t samples);

 private:
  struct Entry {
    std::size_t card = 0;
    Tensor actual;
    Tensor expected;
  };
  std::vector<ScoreCard*> cards_;
  const Context& context_;
  std::vector<Entry> kept_;
};

}  // namespace quench
