// SPDX-License-Identifier: Apache-2.0
// Training of a model whose linear layers are split over ranks, each of which has a part of it.
#pragma once

#include "exec/engine/kernel.h"
#include "qat/engine/torch.h"
#include "quench/quanter.h"
#include "quench/ranks.h"

namespace quench::qat {

using Shards = std::shared_ptr<Ranks>;

/// The kernel of an AllReduce or AllGather, with gradients: what is summed hands its gradient to
/// every rank's part, what is gathered to each its own.
exec::Kernel joining_kernel(const exec::OpContext& context, const Shards& shards);

/// The kernel of a column-parallel layer: the gradient of what it reads is the sum over ranks.
exec::KernelFunction reading_whole(exec::KernelFunction kernel, const Shards& shards);

/// A quanter of a tensor of which each rank has a part: its range is that of all of them, and what
/// it learns it learns from all. `axis`: along which the tensor is split, where channels have
/// scales of their own; -1: it has one scale.
std::unique_ptr<Quanter> shared_quanter(std::unique_ptr<Quanter> quanter, const Shards& shards,
                                        int axis);

}  // namespace quench::qat
