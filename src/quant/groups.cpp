// SPDX-License-Identifier: Apache-2.0
// The arithmetic of groups: channels, or blocks along an axis.
#include "quant/groups.h"

#include <algorithm>

#include "base/format.h"

namespace quench::quant {
namespace {

/// Neighbouring groups that are read together: a cache line of floats.
constexpr std::int64_t kTile = 16;

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t result = 1;
  for (const std::int64_t dim : dims) result *= dim;
  return result;
}

}  // namespace

Groups::Groups(const Shape& shape, const WeightSpec& spec) {
  inner_ = product(shape);
  if (spec.axis < 0) return;
  if (spec.axis >= static_cast<std::int64_t>(shape.size())) {
    fail(ErrorKind::Usage, "a weight of shape {} has no axis {}", to_string(shape), spec.axis);
  }
  const auto axis = static_cast<std::size_t>(spec.axis);
  const std::int64_t before = product(std::span(shape).first(axis));
  const std::int64_t after = product(std::span(shape).subspan(axis + 1));
  length_ = shape[axis];
  if (spec.block <= 0) {
    count_ = length_;
    scale_shape_ = {length_};
    outer_ = before;
    stride_ = length_ * after;
    inner_ = after;
    lanes_ = after == 1 ? length_ : 1;
  } else {
    blocks_ = (length_ + spec.block - 1) / spec.block;
    count_ = before * blocks_ * after;
    scale_shape_ = shape;
    scale_shape_[axis] = blocks_;
    outer_ = std::min(spec.block, length_);
    stride_ = after;
    inner_ = 1;
    lanes_ = after;
  }
  // Blocks of a row with nothing between their elements are plain runs.
  if (blocks_ > 0 && after == 1) std::swap(outer_, inner_);
  const std::int64_t per_row = (std::max<std::int64_t>(lanes_, 1) + kTile - 1) / kTile;
  num_tiles_ = lanes_ <= 1 ? count_ : count_ / lanes_ * per_row;
}

Groups::Tile Groups::tile(std::int64_t index) const noexcept {
  if (lanes_ <= 1) return {index, 1};
  const std::int64_t per_row = (lanes_ + kTile - 1) / kTile;
  const std::int64_t lane = index % per_row * kTile;
  return {index / per_row * lanes_ + lane, std::min(kTile, lanes_ - lane)};
}

std::int64_t Groups::begin(std::int64_t group) const noexcept {
  if (blocks_ == 0) return group * inner_;
  const std::int64_t lane = group % lanes_;
  const std::int64_t block = group / lanes_ % blocks_;
  const std::int64_t row = group / lanes_ / blocks_;
  return (row * length_ + block * outer_ * inner_) * lanes_ + lane;
}

std::int64_t Groups::outer(std::int64_t group) const noexcept {
  if (blocks_ == 0 || outer_ == 1) return outer_;
  const std::int64_t block = group / lanes_ % blocks_;
  return std::min(outer_, length_ - block * outer_);
}

std::int64_t Groups::size(std::int64_t group) const noexcept {
  if (blocks_ > 0 && outer_ == 1) return std::min(inner_, length_ - group % blocks_ * inner_);
  return outer(group) * inner_;
}

template <typename T>
void Groups::gather(const T* src, const Tile& tile, T* dst) const {
  const T* from = src + begin(tile.first);
  const std::int64_t rows = outer(tile.first);
  for (std::int64_t row = 0; row < rows; ++row, from += stride_) {
    if (inner_ == 1) {
      for (std::int64_t lane = 0; lane < tile.count; ++lane) {
        dst[lane * largest() + row] = from[lane];
      }
    } else {
      std::copy_n(from, inner_, dst + row * inner_);
    }
  }
}

template <typename T>
void Groups::scatter(const T* src, const Tile& tile, T* dst) const {
  T* to = dst + begin(tile.first);
  const std::int64_t rows = outer(tile.first);
  for (std::int64_t row = 0; row < rows; ++row, to += stride_) {
    if (inner_ == 1) {
      for (std::int64_t lane = 0; lane < tile.count; ++lane) {
        to[lane] = src[lane * largest() + row];
      }
    } else {
      std::copy_n(src + row * inner_, inner_, to);
    }
  }
}

template void Groups::gather(const float*, const Tile&, float*) const;
template void Groups::gather(const std::int8_t*, const Tile&, std::int8_t*) const;
template void Groups::gather(const std::int16_t*, const Tile&, std::int16_t*) const;
template void Groups::scatter(const float*, const Tile&, float*) const;
template void Groups::scatter(const std::int8_t*, const Tile&, std::int8_t*) const;
template void Groups::scatter(const std::int16_t*, const Tile&, std::int16_t*) const;

}  // namespace quench::quant
