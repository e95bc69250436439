// SPDX-License-Identifier: Apache-2.0
// Batches of samples in an order that only the seed and the step decide.
#pragma once

#include "base/share.h"
#include "evaluate/samples.h"
#include "qat/engine/program.h"
#include "quench/training.h"

namespace quench::qat {

/// What one step is fed with.
struct TrainingBatch {
  TensorMap inputs;  ///< for the float model
  Tensors feeds;     ///< the same memory
  at::Tensor labels;
};

/// Every sample once an epoch, shuffled; the last ones of an epoch that fill no batch are left out.
class Batches {
 public:
  Batches(const evaluation::Samples& samples, const TrainingOptions& options, std::uint64_t seed);

  std::int64_t per_epoch() const noexcept { return count_ / batch_; }
  std::int64_t batch() const noexcept { return batch_; }
  std::int64_t samples() const noexcept { return count_; }
  /// The batch of a step: the same for the same seed and step.
  TrainingBatch at_step(std::int64_t step) { return at_step(step, {.first = 0, .count = batch_}); }
  /// A part of it.
  TrainingBatch at_step(std::int64_t step, Share part);
  /// Samples as they come, without augmentation.
  TrainingBatch plain(std::int64_t first, std::int64_t count);
  /// How many different images chance can make of one, no more than `most`.
  std::int64_t variants(std::int64_t most) const noexcept;
  /// Likewise, each sample changed by chance: another change for each `copy`.
  TrainingBatch varied(std::int64_t copy, std::int64_t first, std::int64_t count);

 private:
  /// `place`: that of the first in its batch.
  TrainingBatch join(const std::vector<std::int64_t>& which, std::int64_t step, bool augment,
                     std::int64_t place = 0);
  std::vector<std::int64_t> neighbours(std::int64_t first, std::int64_t count) const;

  const evaluation::Samples& samples_;
  TrainingOptions options_;
  std::uint64_t seed_;
  std::int64_t count_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

}  // namespace quench::qat
