// SPDX-License-Identifier: Apache-2.0
// Training of the whole model with quantisation in the loop.
#include "base/format.h"
#include "qat/train.h"
#include "tune/learned.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

void train_model(State& state) {
  if (!state.options.training.any()) return;
  if (!state.samples.any()) fail(ErrorKind::Usage, "training needs samples: --data");
  if (state.plan.weights.empty()) {
    fail(ErrorKind::Unsupported, "the plan quantises no weight: there is nothing to train");
  }
  take_learned(state, qat::train(learning_request(state)));
}

}  // namespace

Technique training() {
  return {.info = {.name = "training",
                   .summary = "train weights and scales with quantisation in the loop",
                   .needs = "samples, gradients",
                   .types = "full"},
          .stage = Stage::Weights,
          .apply = train_model};
}

}  // namespace quench::tune
