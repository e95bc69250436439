// SPDX-License-Identifier: Apache-2.0
// Results that are more than memory should hold.
#include "tensor/overflow.h"

namespace quench {

Tensor Overflow::keep(Tensor tensor) {
  constexpr std::size_t kSmall = std::size_t{64} << 10;
  if (tensor.is_stored() || tensor.num_bytes() < kSmall) return tensor;
  const std::lock_guard lock(mutex_);
  if (kept_ + tensor.num_bytes() <= most_) {
    kept_ += tensor.num_bytes();
    return tensor;
  }
  return Tensor::stored(tensor.dtype(), tensor.shape(), spool_.add(tensor.bytes()));
}

}  // namespace quench
