// SPDX-License-Identifier: Apache-2.0
// The techniques that make a quantised model more accurate. Each keeps what it did only where the
// validation set says so.
#pragma once

#include "tune/state.h"

namespace quench::tune {

/// When a technique has its turn.
enum class Stage {
  Model,       ///< before statistics are collected: the float model and its plan may change
  Parameters,  ///< scales and zero points, or bits, have been found and may change
  Weights,     ///< those are final; weights and biases may change
};

/// One row of the list. `apply` leaves the state alone where the technique is not asked for.
struct Technique {
  TechniqueInfo info;
  Stage stage = Stage::Weights;
  void (*apply)(State& state) = nullptr;
};

/// Applies those of a stage, in the order of techniques.inc.
void apply(Stage stage, State& state);

#define QUENCH_TECHNIQUE(name) Technique name();
#include "tune/techniques.inc"
#undef QUENCH_TECHNIQUE

}  // namespace quench::tune
