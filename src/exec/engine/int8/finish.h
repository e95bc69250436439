// SPDX-License-Identifier: Apache-2.0
// The epilogue of a tile: what becomes of its sums, bytes or floats.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/engine/int8/loops.h"

namespace quench::exec {

/// How a second operand is added to bytes.
enum class AddBytes {
  None,
  Once,  ///< before the only rounding
  Twice  ///< after the sums were rounded with a scale of their own
};

/// A byte four times.
inline std::int32_t repeated(std::uint8_t byte) {
  return static_cast<std::int32_t>(0x01010101U * byte);
}

/// How bytes are stored, as registers want it: every field fills 32 bits, to be repeated.
struct BytePattern {
  std::int32_t zero = 0;  ///< 16 bits, twice
  std::int32_t low = 0;   ///< flipped bytes, four times
  std::int32_t high = -1;
  std::int32_t flip = 0;

  BytePattern() = default;
  explicit BytePattern(const ByteStore& store)
      : zero(static_cast<std::int32_t>(0x00010001U * static_cast<std::uint32_t>(store.zero))),
        low(repeated(static_cast<std::uint8_t>(store.low))),
        high(repeated(static_cast<std::uint8_t>(store.high))),
        flip(repeated(store.flip)) {}
  /// Whether saturation is all there is to do.
  bool bare() const noexcept { return zero == 0 && low == 0 && high == -1 && flip == 0; }
};

/// Bytes that are added, over the scale of the result: a flipped byte less `shift`, times `scale`.
struct AddedBytes {
  float scale = 0;
  float shift = 0;
  std::int32_t flip = 0;
};

/// The bounds of a first rounding, less its zero point; and the sum of its bytes and the
/// residual's, which of them is its second operand.
struct MiddleParams {
  float low = 0;
  float high = 0;
  float zero = 0;
  ByteSum sum;
  bool residual_first = false;

  /// The greatest sum, in bytes.
  float most() const noexcept { return 2 * (sum.scale_a + sum.scale_b) + 1; }
};

/// Everything behind the sums of a layer. Vectors have a whole number of sixteen elements.
struct Finish {
  std::vector<float> scales;  ///< of the sums, over the scale of the result
  std::vector<float> shifts;  ///< added to that
  float slope = 1;            ///< of what is negative
  bool bare = false;          ///< no shifts, and bytes that need nothing but saturation
  bool floats = false;        ///< the result is floats
  bool gelu = false;          ///< of floats
  float least = 0;            ///< bounds of floats
  float most = 0;
  BytePattern out;  ///< of bytes
  AddBytes add = AddBytes::None;
  AddedBytes residual;
  MiddleParams middle;

  /// Whether the sums only have to be scaled, rounded and stored as bytes.
  bool plain() const noexcept { return !floats && add == AddBytes::None && slope == 1; }
};

/// Where a tile's sums are and where they go: `rows` times `width` * 16 columns, of which the
/// result has `columns` from `column` on.
struct FinishedTile {
  const std::int32_t* sums = nullptr;
  int width = 0;
  int rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;         ///< elements from row to row of result and residual
  const void* residual = nullptr;  ///< the first row's, bytes or floats; null where there is none
  void* dst = nullptr;             ///< the first row's first column
  const float* factors = nullptr;  ///< of floats, one for each row, before the residual; or null
};

/// For processors where `can_sum_tiles`.
void finish_tile(const Finish& finish, const FinishedTile& tile);
/// The same for floats.
void finish_floats(const Finish& finish, const FinishedTile& tile);

}  // namespace quench::exec
