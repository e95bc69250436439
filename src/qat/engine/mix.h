// SPDX-License-Identifier: Apache-2.0
// Two tensors in one, element by element by chance (QDrop).
#pragma once

#include "qat/engine/loops.h"
#include "qat/engine/torch.h"

namespace quench::qat {

/// Elements of `one` where chance takes them, of `other` elsewhere; gradients go where the element
/// came from. One pass, which comparing random numbers with libtorch's own operators is not.
at::Tensor mixed(const at::Tensor& one, const at::Tensor& other, const Chance& chance);

}  // namespace quench::qat
