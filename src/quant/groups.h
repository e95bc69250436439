// SPDX-License-Identifier: Apache-2.0
// Which elements of a weight share a scale, and how to reach them fast.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quant/weight.h"

namespace quench::quant {

/// A weight cut into groups. Group g holds `outer(g)` rows of `inner` neighbours, `stride` apart.
/// Where a row is one element, `lanes` groups lie side by side.
class Groups {
 public:
  Groups(const Shape& shape, const WeightSpec& spec);

  std::int64_t count() const noexcept { return count_; }
  std::int64_t size(std::int64_t group) const noexcept;
  std::int64_t largest() const noexcept { return outer_ * inner_; }
  /// The shape of the scales.
  const Shape& scale_shape() const noexcept { return scale_shape_; }

  /// Groups that are best read together: [first, first + count).
  struct Tile {
    std::int64_t first = 0;
    std::int64_t count = 1;
  };
  std::int64_t num_tiles() const noexcept { return num_tiles_; }
  Tile tile(std::int64_t index) const noexcept;

  /// The elements lie one after the other: no copy is needed.
  bool contiguous() const noexcept { return outer_ == 1; }
  std::int64_t begin(std::int64_t group) const noexcept;

  /// Copies a tile's groups one after the other, `largest()` apart, and back.
  template <typename T>
  void gather(const T* src, const Tile& tile, T* dst) const;
  template <typename T>
  void scatter(const T* src, const Tile& tile, T* dst) const;

 private:
  std::int64_t outer(std::int64_t group) const noexcept;

  std::int64_t count_ = 1;
  std::int64_t outer_ = 1;
  std::int64_t stride_ = 0;
  std::int64_t inner_ = 0;
  std::int64_t lanes_ = 1;
  std::int64_t blocks_ = 0;  ///< along the axis; 0: whole channels
  std::int64_t length_ = 0;  ///< of the axis
  std::int64_t num_tiles_ = 1;
  Shape scale_shape_;
};

}  // namespace quench::quant
