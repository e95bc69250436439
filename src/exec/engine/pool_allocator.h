// SPDX-License-Identifier: Apache-2.0
// Memory for activations that is kept between steps.
#pragma once

namespace quench::exec {

/// Makes libtorch take large blocks from a pool. The system's allocator returns them after every
/// step, and fetching zeroed pages again costs more than many kernels (SqueezeNet: a fifth of the
/// run). For the whole process, once.
void use_pool_allocator();
/// Gives blocks that nobody uses back to the system.
void trim_pool();

}  // namespace quench::exec
