// SPDX-License-Identifier: Apache-2.0
// Between a job and what is learned by gradients.
#pragma once

#include "qat/train.h"
#include "tune/state.h"

namespace quench::tune {

/// What a job has so far, to be trained on: validated with labels by the share of right answers
/// where the samples have them, else by how near the outputs are to float.
qat::Request learning_request(const State& state);
/// Keeps the model and the scales that were learned.
void take_learned(State& state, qat::Result result);

}  // namespace quench::tune
