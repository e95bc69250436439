// SPDX-License-Identifier: Apache-2.0
// Runs a large batch a few samples at a time, so that what layers hand on stays in the caches.
#pragma once

#include "exec/engine/program.h"

namespace quench::exec {

/// Feeds of a run by slot.
using Feeds = std::vector<std::pair<int, at::Tensor>>;

/// How many samples of a batch are run at a time: as many as fit the threads' caches, and enough
/// that reading the weights for every slice is little beside what samples move. Equal slices are
/// preferred.
std::int64_t slice_size(std::int64_t batch, const SampleBytes& bytes, int threads);

/// Runs the whole graph in slices of `size` samples and joins their outputs.
std::vector<at::Tensor> run_in_slices(Program& program, const Feeds& feeds,
                                      const std::vector<int>& wanted, std::int64_t size);

}  // namespace quench::exec
