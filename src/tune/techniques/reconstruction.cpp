// SPDX-License-Identifier: Apache-2.0
// Rounding of weights that is learned, layer by layer or block by block.
#include "base/format.h"
#include "tune/learned.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

void reconstruct_layers(State& state) {
  const TrainingOptions& training = state.options.training;
  if (!training.adaround && !training.reconstruct) return;
  if (!state.samples.any()) fail(ErrorKind::Usage, "reconstruction needs samples: --data");
  if (state.plan.weights.empty()) {
    fail(ErrorKind::Unsupported, "the plan quantises no weight: there is nothing to reconstruct");
  }
  take_learned(state, qat::reconstruct(learning_request(state)));
}

}  // namespace

Technique reconstruction() {
  return {
      .info = {.name = "reconstruction",
               .summary =
                   "learn how weights are rounded, by layer (AdaRound) or by block (BRECQ, QDrop)",
               .needs = "samples, gradients",
               .types = "full"},
      .stage = Stage::Weights,
      .apply = reconstruct_layers};
}

}  // namespace quench::tune
