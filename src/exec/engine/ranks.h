// SPDX-License-Identifier: Apache-2.0
// What the engine's own parts ask of the other ranks, beyond quench/ranks.h.
#pragma once

#include <vector>

#include "exec/engine/torch.h"
#include "quench/ranks.h"

namespace quench::exec {

/// Every tensor becomes the sum of those that the ranks have, bit for bit the same on each.
void sum_over(Ranks& ranks, std::vector<at::Tensor>& tensors);

}  // namespace quench::exec
