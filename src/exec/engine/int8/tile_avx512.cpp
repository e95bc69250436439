// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes for AVX-512 with VNNI: all sums of a tile stay in registers.
#include "base/cpu.h"
#include "exec/engine/int8/tile.h"

#if defined(QUENCH_X86)
#include <array>
#include <cstring>
#include <utility>

#include "exec/engine/int8/finish_lanes.h"
#include "exec/engine/unroll.h"

// With g++ 12 sums stay in registers only while nothing here is forced to be inlined.
namespace quench::exec {
namespace {

QUENCH_VNNI inline __m512i four_bytes(const std::uint8_t* from) {
  std::int32_t bytes = 0;
  std::memcpy(&bytes, from, sizeof(bytes));
  return _mm512_set1_epi32(bytes);
}

/// A row of the tile, scaled and rounded.
template <int kWidth, bool kBare>
QUENCH_VNNI inline void round_row(const __m512i* sums, const TileBytes& to, __m512i* whole) {
  QUENCH_UNROLL
  for (int n = 0; n < kWidth; ++n) {
    const std::int64_t column = to.column + lanes::kLanes * n;
    const float* scales = to.finish->scales.data() + column;
    if constexpr (kBare) {
      const __m512 steps = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[n]), _mm512_loadu_ps(scales));
      whole[n] = _mm512_cvtps_epi32(steps);
    } else {
      whole[n] =
          _mm512_cvtps_epi32(lanes::scaled(sums[n], scales, to.finish->shifts.data() + column));
    }
  }
}

/// Narrow tiles make bytes of several rows at once.
template <int kWidth, int kRows, bool kBare>
QUENCH_VNNI inline void store_bytes(const __m512i (*sums)[kWidth], const TileBytes& to,
                                    std::uint8_t* dst) {
  constexpr int kAtOnce = kWidth <= 2 ? lanes::kMaxWidth / kWidth : 1;
  const lanes::Out out = lanes::registers(to.finish->out);
  QUENCH_UNROLL
  for (int i = 0; i < kRows; i += kAtOnce) {
    __m512i whole[lanes::kMaxWidth] = {};
    QUENCH_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k < kRows) round_row<kWidth, kBare>(sums[i + k], to, &whole[k * kWidth]);
    }
    const __m512i bytes = kBare ? lanes::saturated(whole, out) : lanes::packed(whole, out);
    QUENCH_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k >= kRows) break;
      lanes::write<kWidth>(dst + (i + k) * to.stride, lanes::part<kWidth>(bytes, k), to.columns);
    }
  }
}

/// Adds the products of one piece of every row.
template <int kWidth, int kRows, bool kFlip>
QUENCH_VNNI inline const std::int8_t* add_run(const std::uint8_t* const* pieces,
                                              std::int64_t groups, const std::int8_t* weights,
                                              __m512i (*sums)[kWidth]) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
  const std::uint8_t* from[kRows];
  QUENCH_UNROLL
  for (int i = 0; i < kRows; ++i) from[i] = pieces[i];
  for (std::int64_t group = 0; group < groups; ++group) {
    __m512i columns[kWidth];
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      columns[n] = _mm512_loadu_si512(weights);
      weights += 4 * lanes::kLanes;
    }
    QUENCH_UNROLL
    for (int i = 0; i < kRows; ++i) {
      __m512i bytes = four_bytes(from[i] + 4 * group);
      if constexpr (kFlip) bytes = _mm512_xor_si512(bytes, flip);
      QUENCH_UNROLL
      for (int n = 0; n < kWidth; ++n) {
        sums[i][n] = _mm512_dpbusd_epi32(sums[i][n], bytes, columns[n]);
      }
    }
  }
  return weights;
}

/// One tile: its sums, or its bytes where `to` is given.
template <int kWidth, int kRows, bool kFlip>
QUENCH_VNNI void sum(const Tile& tile, const TileBytes* to, const std::uint8_t* const* pieces,
                     std::uint8_t* dst) {
  __m512i sums[kRows][kWidth];
  QUENCH_UNROLL
  for (int i = 0; i < kRows; ++i) {
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      sums[i][n] = _mm512_loadu_si512(tile.start + lanes::kLanes * n);
    }
  }
  const std::int8_t* weights = tile.weights;
  for (std::int64_t run = 0; run < tile.runs; ++run) {
    weights = add_run<kWidth, kRows, kFlip>(pieces + run * tile.stride, tile.groups, weights, sums);
  }
  if (to != nullptr) {
    return to->finish->bare ? store_bytes<kWidth, kRows, true>(sums, *to, dst)
                            : store_bytes<kWidth, kRows, false>(sums, *to, dst);
  }
  QUENCH_UNROLL
  for (int i = 0; i < kRows; ++i) {
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      _mm512_storeu_si512(tile.sums + lanes::kLanes * (i * kWidth + n), sums[i][n]);
    }
  }
}

template <int kWidth, int kRows, bool kFlip>
void sum_all(const Tile& tile, const TileBytes* to) {
  if (to == nullptr) return sum<kWidth, kRows, kFlip>(tile, nullptr, tile.pieces, nullptr);
  for (std::int64_t i = 0; i < to->tiles; ++i) {
    sum<kWidth, kRows, kFlip>(tile, to, tile.pieces + i * kRows, to->dst + i * kRows * to->stride);
  }
}

using SumFunction = void (*)(const Tile&, const TileBytes*);

template <int kWidth, bool kFlip, std::size_t... kRows>
constexpr std::array<SumFunction, sizeof...(kRows)> by_rows(std::index_sequence<kRows...>) {
  return {&sum_all<kWidth, static_cast<int>(kRows) + 1, kFlip>...};
}

template <int kWidth, bool kFlip>
SumFunction pick(int rows) {
  static constexpr auto kTable =
      by_rows<kWidth, kFlip>(std::make_index_sequence<tile_rows(kWidth)>());
  return kTable[static_cast<std::size_t>(rows) - 1];
}

template <bool kFlip>
SumFunction pick(int width, int rows) {
  switch (width) {
    case 1:
      return pick<1, kFlip>(rows);
    case 2:
      return pick<2, kFlip>(rows);
    case 3:
      return pick<3, kFlip>(rows);
    default:
      return pick<4, kFlip>(rows);
  }
}

SumFunction pick(int width, int rows, bool flip) {
  return flip ? pick<true>(width, rows) : pick<false>(width, rows);
}

}  // namespace

bool can_sum_tiles() { return cpu::uses(Isa::Vnni); }

void sum_tile(const Tile& tile, int width, int rows, bool flip) {
  pick(width, rows, flip)(tile, nullptr);
}

void sum_tiles(const Tile& tile, const TileBytes& bytes, int width, int rows, bool flip) {
  pick(width, rows, flip)(tile, &bytes);
}

}  // namespace quench::exec
#else
namespace quench::exec {
bool can_sum_tiles() { return false; }
void sum_tile(const Tile&, int, int, bool) {}
void sum_tiles(const Tile&, const TileBytes&, int, int, bool) {}
}  // namespace quench::exec
#endif
