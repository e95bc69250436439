// SPDX-License-Identifier: Apache-2.0
// Samples that the caller's own code holds in memory, in place of files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quench/graph.h"

namespace quench {

/// What the caller's code gave at once: some samples, or one without its batch dimension.
struct GivenBatch {
  TensorMap named;               ///< by input; "label" or "labels", unless an input: class indices
  std::vector<Tensor> in_order;  ///< or in the order of the inputs, one more being class indices
};

/// In the order in which they are read. Nothing is copied.
struct GivenSamples {
  std::vector<GivenBatch> batches;
  std::vector<std::int64_t> labels;  ///< of all samples, where the batches carry none
};

/// Throws Error(BadData) where the batch does not fit the model's inputs.
std::int64_t count_samples(const GivenBatch& batch, const std::vector<Value>& model_inputs);

/// Stands for the path of given samples, in messages and in stored settings.
inline constexpr const char* kGivenPath = "<given>";

}  // namespace quench
