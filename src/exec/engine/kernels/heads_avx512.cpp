// SPDX-License-Identifier: Apache-2.0
// Heads of attention for AVX-512: products in tiles whose sums stay in registers.
#include <algorithm>

#include "base/cpu.h"
#include "exec/engine/kernels/heads.h"

namespace quench::exec {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr int kMaxWidth = 4;
constexpr std::int64_t kPanel = kLanes * kMaxWidth;

std::int64_t whole(std::int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

}  // namespace

std::int64_t HeadShape::space() const {
  return whole(keys) * depth + keys * whole(width) + kQueries * whole(keys);
}

}  // namespace quench::exec

#if defined(QUENCH_X86)
#include <immintrin.h>

#include <array>
#include <utility>

#include "exec/engine/unroll.h"

namespace quench::exec {
namespace {

constexpr int kMaxRows = 6;

QUENCH_AVX512 inline __mmask16 first_lanes(std::int64_t count) {
  return count >= kLanes ? static_cast<__mmask16>(-1)
                         : static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
}

/// Masked stores are slow, and slow to read again.
QUENCH_AVX512 inline void write(float* dst, __m512 x, std::int64_t count) {
  if (count >= kLanes) return _mm512_storeu_ps(dst, x);
  _mm512_mask_storeu_ps(dst, first_lanes(count), x);
}

/// A few rows times a panel of columns.
struct FloatTile {
  FloatRows rows;
  const float* panel = nullptr;  ///< for each element of a row: width * 16 columns
  std::int64_t depth = 0;
  const float* factors = nullptr;  ///< of the results, one for each row
  float* dst = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;  ///< that are stored
};

template <int kWidth, int kRows>
QUENCH_AVX512 void multiply(const FloatTile& tile) {
  __m512 sums[kRows][kWidth];
  const float* from[kRows];
  QUENCH_UNROLL
  for (int i = 0; i < kRows; ++i) {
    from[i] = tile.rows.data + i * tile.rows.stride;
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) sums[i][n] = _mm512_setzero_ps();
  }
  const float* panel = tile.panel;
  for (std::int64_t d = 0; d < tile.depth; ++d) {
    __m512 columns[kWidth];
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n, panel += kLanes) columns[n] = _mm512_loadu_ps(panel);
    QUENCH_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const __m512 x = _mm512_set1_ps(from[i][d]);
      QUENCH_UNROLL
      for (int n = 0; n < kWidth; ++n) sums[i][n] = _mm512_fmadd_ps(x, columns[n], sums[i][n]);
    }
  }
  QUENCH_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const __m512 factor = _mm512_set1_ps(tile.factors[i]);
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      sums[i][n] = _mm512_mul_ps(sums[i][n], factor);
      write(tile.dst + i * tile.stride + n * kLanes, sums[i][n], tile.columns - n * kLanes);
    }
  }
}

using TileFunction = void (*)(const FloatTile&);

template <int kWidth, std::size_t... kRows>
constexpr std::array<TileFunction, sizeof...(kRows)> by_rows(std::index_sequence<kRows...>) {
  return {&multiply<kWidth, static_cast<int>(kRows) + 1>...};
}

TileFunction pick(std::int64_t width, std::int64_t rows) {
  static constexpr auto kAll = std::make_index_sequence<kMaxRows>();
  static constexpr std::array<std::array<TileFunction, kMaxRows>, kMaxWidth> kTable = {
      by_rows<1>(kAll), by_rows<2>(kAll), by_rows<3>(kAll), by_rows<4>(kAll)};
  return kTable[static_cast<std::size_t>(width) - 1][static_cast<std::size_t>(rows) - 1];
}

/// All rows times all panels: `tile` has the first ones, and as many `columns` as there are.
void multiply_all(FloatTile tile, std::int64_t rows) {
  const FloatTile whole_tile = tile;
  const std::int64_t tiles = (rows + kMaxRows - 1) / kMaxRows;
  for (std::int64_t column = 0; column < whole_tile.columns; column += kPanel) {
    tile = whole_tile;
    tile.columns = std::min(whole_tile.columns - column, kPanel);
    tile.panel += column * tile.depth;
    tile.dst += column;
    const std::int64_t width = whole(tile.columns) / kLanes;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t count = (i + 1) * rows / tiles - i * rows / tiles;
      pick(width, count)(tile);
      tile.rows.data += count * tile.rows.stride;
      tile.factors += count;
      tile.dst += count * tile.stride;
    }
  }
}

/// e^x for x <= 0, up to two units in the last place; NaN stays.
QUENCH_AVX512 inline __m512 exponential(__m512 given) {
  const __m512 x = _mm512_max_ps(_mm512_set1_ps(-87.0F), given);  // the second wins against NaN
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 near = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), near);
  constexpr float kSeries[] = {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F};
  __m512 y = _mm512_set1_ps(1.0F / 5040);
  QUENCH_UNROLL
  for (const float factor : kSeries) y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(factor));
  return _mm512_scalef_ps(y, n);
}

/// Exponentials of the distance to the row's largest score, in place; returns 1 / their sum, which
/// is NaN for rows of -infinity or with NaN, as the definition has it.
QUENCH_AVX512 float soften(float* row, const float* mask, std::int64_t columns) {
  const __m512 never = _mm512_set1_ps(-__builtin_inff());
  __m512 most = never;
  for (std::int64_t i = 0; i < columns; i += kLanes) {
    const __mmask16 there = first_lanes(columns - i);
    __m512 x = _mm512_mask_loadu_ps(never, there, row + i);
    if (mask != nullptr) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, mask + i));
    _mm512_storeu_ps(row + i, x);
    most = _mm512_max_ps(most, x);
  }
  const __m512 largest = _mm512_set1_ps(_mm512_reduce_max_ps(most));
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < columns; i += kLanes) {
    const __m512 x = exponential(_mm512_sub_ps(_mm512_loadu_ps(row + i), largest));
    _mm512_storeu_ps(row + i, x);
    sum = _mm512_mask_add_ps(sum, first_lanes(columns - i), sum, x);
  }
  return 1.0F / _mm512_reduce_add_ps(sum);
}

/// Lanes of four registers: those of 128 bits of `a`, then `b`, picked by the constant.
template <int kPick>
QUENCH_AVX512 inline void exchange(__m512& a, __m512& b) {
  const __m512 first = _mm512_shuffle_f32x4(a, b, kPick);
  b = _mm512_shuffle_f32x4(a, b, kPick + 0x55);
  a = first;
}

/// Sixteen rows of sixteen floats, turned.
QUENCH_AVX512 inline void turn(__m512* x) {
  __m512 y[kLanes];
  QUENCH_UNROLL
  for (int i = 0; i < kLanes; i += 4) {
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[i], x[i + 1]));
    const __m512d b = _mm512_castps_pd(_mm512_unpackhi_ps(x[i], x[i + 1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(x[i + 2], x[i + 3]));
    const __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(x[i + 2], x[i + 3]));
    y[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    y[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    y[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    y[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  // y[4 * r + c] has, in its lanes l of 128 bits, column 4 * l + c of rows 4 * r to 4 * r + 3.
  QUENCH_UNROLL
  for (int c = 0; c < 4; ++c) {
    exchange<0x88>(y[c], y[4 + c]);  // lanes 0, 2 of both, then 1, 3
    exchange<0x88>(y[8 + c], y[12 + c]);
    x[c] = _mm512_shuffle_f32x4(y[c], y[8 + c], 0x88);
    x[8 + c] = _mm512_shuffle_f32x4(y[c], y[8 + c], 0xDD);
    x[4 + c] = _mm512_shuffle_f32x4(y[4 + c], y[12 + c], 0x88);
    x[12 + c] = _mm512_shuffle_f32x4(y[4 + c], y[12 + c], 0xDD);
  }
}

/// Sixteen keys from `first` on, as columns of their panel.
QUENCH_AVX512 void pack_keys(const HeadShape& shape, FloatRows keys, std::int64_t first,
                             float* panels) {
  const std::int64_t start = first / kPanel * kPanel;
  const std::int64_t stride = std::min(whole(shape.keys) - start, kPanel);
  float* dst = panels + start * shape.depth + (first - start);
  const std::int64_t count = std::min(shape.keys - first, kLanes);
  for (std::int64_t d = 0; d < shape.depth; d += kLanes) {
    const __mmask16 there = first_lanes(shape.depth - d);
    __m512 block[kLanes];
    QUENCH_UNROLL
    for (int i = 0; i < kLanes; ++i) {
      block[i] = i < count ? _mm512_maskz_loadu_ps(there, keys.data + (first + i) * keys.stride + d)
                           : _mm512_setzero_ps();
    }
    turn(block);
    const std::int64_t rows = std::min(shape.depth - d, kLanes);
    for (std::int64_t i = 0; i < rows; ++i) _mm512_storeu_ps(dst + (d + i) * stride, block[i]);
  }
}

/// Sixteen columns of values, as part of their panel.
QUENCH_AVX512 void pack_values(const HeadShape& shape, FloatRows values, std::int64_t first,
                               float* panels) {
  const std::int64_t start = first / kPanel * kPanel;
  const std::int64_t stride = std::min(whole(shape.width) - start, kPanel);
  float* dst = panels + start * shape.keys + (first - start);
  const __mmask16 there = first_lanes(shape.width - first);
  for (std::int64_t i = 0; i < shape.keys; ++i) {
    _mm512_storeu_ps(dst + i * stride,
                     _mm512_maskz_loadu_ps(there, values.data + i * values.stride + first));
  }
}

}  // namespace

bool can_attend() { return cpu::uses(Isa::Avx512); }

void pack_head(const HeadShape& shape, FloatRows keys, FloatRows values, float* space) {
  for (std::int64_t i = 0; i < shape.keys; i += kLanes) pack_keys(shape, keys, i, space);
  float* panels = space + whole(shape.keys) * shape.depth;
  for (std::int64_t i = 0; i < shape.width; i += kLanes) pack_values(shape, values, i, panels);
}

void attend(const HeadShape& shape, const HeadQueries& queries, float* space) {
  const std::int64_t stride = whole(shape.keys);
  const float* values = space + stride * shape.depth;
  float* scores = space + stride * shape.depth + shape.keys * whole(shape.width);
  float factors[kQueries];
  std::fill_n(factors, kQueries, queries.scale);
  multiply_all({.rows = queries.rows,
                .panel = space,
                .depth = shape.depth,
                .factors = factors,
                .dst = scores,
                .stride = stride,
                .columns = shape.keys},
               queries.count);
  for (std::int64_t i = 0; i < queries.count; ++i) {
    const float* mask = queries.masks == nullptr ? nullptr : queries.masks[i];
    factors[i] = soften(scores + i * stride, mask, shape.keys);
  }
  multiply_all({.rows = {scores, stride},
                .panel = values,
                .depth = shape.keys,
                .factors = factors,
                .dst = queries.dst,
                .stride = queries.stride,
                .columns = shape.width},
               queries.count);
}

}  // namespace quench::exec
#else
namespace quench::exec {
bool can_attend() { return false; }
void pack_head(const HeadShape&, FloatRows, FloatRows, float*) {}
void attend(const HeadShape&, const HeadQueries&, float*) {}
}  // namespace quench::exec
#endif
