// SPDX-License-Identifier: Apache-2.0
// What a training begins with where nothing else is asked for, in the program and in Python.
#pragma once

#include "quench/options.h"

namespace quench {

/// Which step is kept is decided by the validation set: a handful of samples cannot tell. It takes
/// no more than a fifth of them.
inline QuantizeOptions training_defaults() {
  QuantizeOptions options;
  options.held_out = 256;
  return options;
}

/// Gives the training a length where it has none.
inline void choose_training_length(TrainingOptions& training) {
  constexpr double kEpochs = 10;
  if (!training.any()) training.epochs = kEpochs;
}

}  // namespace quench
