// SPDX-License-Identifier: Apache-2.0
// Brings what a run is fed with to a GPU beside what that computes.
#pragma once

#include "exec/engine/device.h"

namespace quench::exec {

/// As `Placement::there`, by way of pinned memory and on a stream of its own; the tensor is there
/// when this returns, which another thread can wait for while the GPU runs.
at::Tensor fetch(const at::Tensor& tensor, const Placement& place);

}  // namespace quench::exec
