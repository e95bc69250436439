// SPDX-License-Identifier: Apache-2.0
// What the engine's own parts ask of the other ranks, beyond quench/ranks.h.
#pragma once

#include <functional>
#include <vector>

#include "exec/engine/torch.h"
#include "quench/ranks.h"

namespace quench::exec {

/// Every tensor becomes the sum of those that the ranks have, bit for bit the same on each.
void sum_over(Ranks& ranks, std::vector<at::Tensor>& tensors);

/// Likewise for one tensor, meanwhile: it must live, and be left alone, until what is returned was
/// called, which waits. Every rank begins the same sums in the same order.
std::function<void()> begin_sum(Ranks& ranks, at::Tensor& tensor);

/// What all ranks have of a tensor, one behind the other along `axis`, on each of them. Parts may
/// differ in size along it.
at::Tensor gather_over(Ranks& ranks, const at::Tensor& part, std::int64_t axis);

}  // namespace quench::exec
