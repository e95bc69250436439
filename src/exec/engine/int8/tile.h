// SPDX-License-Identifier: Apache-2.0
// The sums of a few rows of bytes times a few columns of weights.
#pragma once

#include <cstdint>

#include "exec/engine/int8/finish.h"

namespace quench::exec {

/// Columns of weights are packed and multiplied sixteen at a time, rows of bytes four bytes at a
/// time.
inline constexpr std::int64_t kTileColumns = 16;
inline constexpr std::int64_t kTileDepth = 4;
/// At most so many columns and rows in a tile.
inline constexpr int kMaxTileWidth = 4;  ///< of sixteen columns each
inline constexpr int kMaxTileRows = 12;

/// What one tile needs. A row of bytes comes in `runs` pieces of `groups` times four bytes each,
/// which may lie anywhere: piece r of row i is at `pieces[r * stride + i]`.
struct Tile {
  const std::uint8_t* const* pieces = nullptr;
  std::int64_t stride = 0;
  std::int64_t runs = 0;
  std::int64_t groups = 0;
  const std::int8_t* weights = nullptr;  ///< for each group: width * 16 columns of four bytes
  const std::int32_t* start = nullptr;   ///< what the sums of each column start from
  std::int32_t* sums = nullptr;          ///< rows * width * 16
};

/// Where a tile's bytes go that need nothing but scaling and rounding.
struct TileBytes {
  const Finish* finish = nullptr;
  std::int64_t column = 0;   ///< of the result
  std::int64_t columns = 0;  ///< that the result has from there on
  std::int64_t stride = 0;
  std::uint8_t* dst = nullptr;
  std::int64_t tiles = 1;
};

/// How many rows a tile of `width` times sixteen columns has at most.
constexpr int tile_rows(int width) { return width == 4 ? 6 : width == 3 ? 8 : 12; }

/// Whether this processor has what `sum_tile` needs (AVX-512 with VNNI).
bool can_sum_tiles();
/// Bytes are unsigned; with `flip` they are signed ones, taken as unsigned by flipping their
/// highest bit.
void sum_tile(const Tile& tile, int width, int rows, bool flip);
/// `bytes.tiles` of them, one below the other, straight into bytes; the finish must be plain.
void sum_tiles(const Tile& tile, const TileBytes& bytes, int width, int rows, bool flip);

}  // namespace quench::exec
