// SPDX-License-Identifier: Apache-2.0
// Statistics of tapped values that lie on a GPU.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "exec/engine/cuda/kernels.h"
#include "exec/engine/torch.h"
#include "quench/session.h"

namespace quench::exec {

/// Counts tensors as they are computed and keeps what they came to on the GPU until it is shown:
/// nothing waits for the GPU in between.
class TapCounter {
 public:
  explicit TapCounter(at::Device device);

  /// Samples along the first dimension, floats or halves.
  void count(std::size_t tap, const at::Tensor& value);
  /// Shows what was counted since the last time, and forgets it.
  void show(const std::function<void(const TapSummary&)>& on_summary);
  void forget() { counted_.clear(); }

 private:
  struct Counted {
    std::int64_t samples;
    at::Tensor bytes;  ///< summaries, then the bins of their common range
  };
  std::shared_ptr<CudaKernels> kernels_;
  at::Device device_;
  std::map<std::size_t, std::vector<Counted>> counted_;  ///< by tap; parts of a batch in order
};

}  // namespace quench::exec
