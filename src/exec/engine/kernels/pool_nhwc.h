// SPDX-License-Identifier: Apache-2.0
// The mean over all pixels, straight on channels-last memory.
#pragma once

#include "exec/engine/kernels/common.h"

namespace quench::exec {

/// Whether a tensor is one the function below takes: float32, rank 4, channels-last.
bool is_nhwc_float(const at::Tensor& x);

at::Tensor global_average_nhwc(const at::Tensor& x);

}  // namespace quench::exec
