// SPDX-License-Identifier: Apache-2.0
// Training of the whole model with quantisation in the loop.
#include <algorithm>

#include "base/format.h"
#include "qat/train.h"
#include "tune/learned.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

constexpr int kFewBits = 4;

/// Few samples say how to round weights of few bits, but not where to move them.
void advise_reconstruction(const State& state) {
  const TrainingOptions& training = state.options.training;
  const std::int64_t samples = state.samples.calibration().count;
  if (training.reconstruct || training.adaround || samples >= qat::kEnoughSamples) return;
  const bool few_bits = std::ranges::any_of(
      state.plan.weights, [](const auto& weight) { return weight.spec.bits <= kFewBits; });
  if (!few_bits) return;
  state.context.warn(
      format("{} samples are few to train weights of {} bits or less with; --reconstruct first "
             "learns how to round them, which usually keeps far more",
             samples, kFewBits));
}

void train_model(State& state) {
  if (!state.options.training.any()) return;
  if (!state.samples.any()) fail(ErrorKind::Usage, "training needs samples: --data");
  if (state.plan.weights.empty()) {
    fail(ErrorKind::Unsupported, "the plan quantises no weight: there is nothing to train");
  }
  take_learned(state, qat::train(learning_request(state)));
  advise_reconstruction(state);
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
