// SPDX-License-Identifier: Apache-2.0
// Convolutions on a GPU with what follows them in one pass.
#pragma once

#include "exec/engine/kernel.h"
#include "exec/engine/onednn/fusion.h"

namespace quench::exec {

/// `plain` is a convolution without its tail, `whole` with it. On a GPU, outside of training, bias,
/// residual and activation become one pass over the result, where libtorch takes one each.
Kernel with_gpu_epilogue(Kernel plain, Kernel whole, const Fusion& fusion);

}  // namespace quench::exec
