// SPDX-License-Identifier: Apache-2.0
// Pools straight on channels-last memory.
#pragma once

#include "exec/engine/kernels/common.h"

namespace quench::exec {

/// Whether a tensor is one the functions below take: float32, rank 4, channels-last.
bool is_nhwc_float(const at::Tensor& x);

/// `out` has the spatial sizes of the result; pads are begins, then ends. libtorch's own also
/// looks for indices, which takes three times as long.
at::Tensor max_pool_nhwc(const at::Tensor& x, const Window& window, const Ints& pads,
                         const Ints& out);
at::Tensor global_average_nhwc(const at::Tensor& x);

}  // namespace quench::exec
