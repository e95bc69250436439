// SPDX-License-Identifier: Apache-2.0
// Operators between the processes that run a model together.
#pragma once

#include "exec/engine/kernel.h"
#include "quench/ranks.h"

namespace quench::exec {

/// The kernel of an AllReduce or AllGather of a model that these processes hold together.
Kernel make_collective(const OpContext& context, const std::shared_ptr<Ranks>& ranks);

}  // namespace quench::exec
