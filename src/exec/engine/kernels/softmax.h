// SPDX-License-Identifier: Apache-2.0
// Softmax with the factor and the mask that attention puts in front of it.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/engine/torch.h"

namespace quench::exec {

/// Where a tensor that broadcasts has its part for each row of another.
class RowPointers {
 public:
  RowPointers(const at::Tensor& small, at::IntArrayRef shape) : shape_(shape.vec()) {
    if (!small.defined()) return;
    whole_ = small.expand(shape);
    if (whole_.stride(-1) != 1 && shape.back() != 1) whole_ = whole_.contiguous();
  }

  const float* operator[](std::int64_t row) const {
    if (!whole_.defined()) return nullptr;
    std::int64_t offset = 0;
    for (std::int64_t axis = whole_.dim() - 2; axis >= 0; --axis) {
      offset += row % shape_[static_cast<std::size_t>(axis)] * whole_.stride(axis);
      row /= shape_[static_cast<std::size_t>(axis)];
    }
    return whole_.data_ptr<float>() + offset;
  }

 private:
  std::vector<std::int64_t> shape_;
  at::Tensor whole_;
};

/// softmax(x * scale + mask) over the last axis; the mask may be undefined.
at::Tensor scaled_softmax(const at::Tensor& x, float scale, const at::Tensor& mask);

}  // namespace quench::exec
