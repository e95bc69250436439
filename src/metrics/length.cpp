// SPDX-License-Identifier: Apache-2.0
// Cuts or fills up the dimensions between samples and classes.
#include "metrics/length.h"

#include <algorithm>

namespace quench::metrics {
namespace {

/// Samples and classes, the first and the last dimension, agree.
bool differ_in_length(const Shape& actual, const Shape& expected) {
  return actual != expected && actual.size() == expected.size() && actual.size() >= 3 &&
         actual.front() == expected.front() && actual.back() == expected.back();
}

/// Copies what both have of the dimensions from `axis` on.
void copy_common(std::span<const float> from, const Shape& from_shape, std::span<float> to,
                 const Shape& to_shape, std::size_t axis) {
  if (axis == from_shape.size()) {
    to[0] = from[0];
    return;
  }
  const std::int64_t common = std::min(from_shape[axis], to_shape[axis]);
  if (common == 0) return;
  const std::size_t from_size = from.size() / static_cast<std::size_t>(from_shape[axis]);
  const std::size_t to_size = to.size() / static_cast<std::size_t>(to_shape[axis]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(common); ++i) {
    copy_common(from.subspan(i * from_size, from_size), from_shape,
                to.subspan(i * to_size, to_size), to_shape, axis + 1);
  }
}

}  // namespace

Tensor at_length_of(const Tensor& actual, const Tensor& expected) {
  if (!differ_in_length(actual.shape(), expected.shape())) return actual;
  const std::vector<float> from = to_float(actual);
  Tensor result = Tensor::zeros(DType::Float32, expected.shape());
  if (!from.empty() && result.size() > 0) {
    copy_common(from, actual.shape(), result.mutable_data<float>(), expected.shape(), 0);
  }
  return result;
}

}  // namespace quench::metrics
