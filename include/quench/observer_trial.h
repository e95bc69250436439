// SPDX-License-Identifier: Apache-2.0
// How the ranges of activations were chosen where no rule names an observer.
#pragma once

#include <string>
#include <vector>

#include "quench/evaluate.h"

namespace quench {

/// A way to choose the ranges of activations, and how near the outputs come to float with it,
/// before biases are corrected.
struct ObserverTrial {
  std::string observer;
  /// Values with so many layers or fewer between them and an output are by min_max.
  int unclipped_layers = 0;
  bool chosen = false;
  /// `sqnr` and, where an output has enough values, `peak_sqnr`: of those furthest from the usual.
  std::vector<OutputScores> outputs;
};

}  // namespace quench
