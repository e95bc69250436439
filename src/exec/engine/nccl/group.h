// SPDX-License-Identifier: Apache-2.0
// What the module `nccl` gives: sums between GPUs. It is built where libtorch has NCCL and the
// headers of CUDA and NCCL are there, and loaded when ranks with a GPU each first sum.
#pragma once

#include <functional>

#include "exec/engine/torch.h"

namespace c10d {
class Store;
}

namespace quench::exec {

class NcclGroup {
 public:
  virtual ~NcclGroup() = default;
  /// Begins to sum over ranks; what is returned makes the caller's stream wait.
  virtual std::function<void()> sum(at::Tensor& tensor) = 0;
};

/// The symbol `quench_nccl_group`.
using NcclFunction = NcclGroup* (*)(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                    int size);

}  // namespace quench::exec
