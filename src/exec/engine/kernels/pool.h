// SPDX-License-Identifier: Apache-2.0
// What a pool's attributes say.
#pragma once

#include <functional>

#include "exec/engine/kernels/common.h"

namespace quench::exec {

/// A pool's attributes, with one spatial axis more where there is only one: libtorch's 2-D kernels
/// are the fast ones.
struct Pool {
  Window window;
  bool ceil = false;
  bool count_pads = false;
  bool column_major = false;
  std::int64_t p = 2;
  std::size_t rank = 2;
  bool lifted = false;
};

/// Elements to add at the end of each axis so that the last, partial windows of ceil_mode are
/// whole.
Ints ceil_extra(const Pool& pool, at::IntArrayRef spatial, const Ints& pads);
/// Pads whose ends are longer by `extra`.
Ints with_extra(const Ints& pads, const Ints& extra);

enum class PoolKind { Max, Average };
/// A pool on oneDNN; nothing for an input that it does not take.
using FastPoolFunction = std::function<std::optional<at::Tensor>(const at::Tensor&)>;
/// Empty where oneDNN has no form of this pool.
FastPoolFunction make_fast_pool(const Pool& pool, PoolKind kind);

}  // namespace quench::exec
