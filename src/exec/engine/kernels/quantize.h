// SPDX-License-Identifier: Apache-2.0
// The end of every quantising operator.
#pragma once

#include "exec/engine/torch.h"

namespace quench::exec {

/// Rounded quotients, moved by the zero point (which may be undefined) and saturated to the type.
at::Tensor to_integers(const at::Tensor& steps, const at::Tensor& zero, at::ScalarType type);

}  // namespace quench::exec
