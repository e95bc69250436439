// SPDX-License-Identifier: Apache-2.0
// Tiles of pixels and columns whose sums stay in AVX-512 registers.
#include "base/cpu.h"
#include "exec/engine/kernels/row_product.h"

#if defined(QUENCH_X86)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "exec/engine/unroll.h"

// As for tiles of bytes: nothing is forced inline.
namespace quench::exec {
namespace {

constexpr int kMaxWidth = 3;

constexpr int tile_pixels(int width) { return width == 1 ? 12 : 24 / width; }

/// Sixteen columns at a time.
struct Whole {
  using Register = __m512;
  static constexpr std::int64_t kLanes = 16;
  QUENCH_AVX512 static Register load(const float* from) { return _mm512_loadu_ps(from); }
  QUENCH_AVX512 static Register spread(float x) { return _mm512_set1_ps(x); }
  QUENCH_AVX512 static Register add(Register x, Register by, Register to) {
    return _mm512_fmadd_ps(x, by, to);
  }
  /// The second operand wins against a NaN: that must stay.
  QUENCH_AVX512 static Register clamp(Register x, Register least, Register most) {
    return _mm512_min_ps(most, _mm512_max_ps(least, x));
  }
  QUENCH_AVX512 static void store(float* to, Register x, std::int64_t count) {
    const auto there = static_cast<__mmask16>(0xFFFF >> (kLanes - std::min(count, kLanes)));
    _mm512_mask_storeu_ps(to, there, x);
  }
};

/// Eight: processors do two of these at once where they do one of sixteen.
struct Half {
  using Register = __m256;
  static constexpr std::int64_t kLanes = 8;
  QUENCH_AVX512 static Register load(const float* from) { return _mm256_loadu_ps(from); }
  QUENCH_AVX512 static Register spread(float x) { return _mm256_set1_ps(x); }
  QUENCH_AVX512 static Register add(Register x, Register by, Register to) {
    return _mm256_fmadd_ps(x, by, to);
  }
  QUENCH_AVX512 static Register clamp(Register x, Register least, Register most) {
    return _mm256_min_ps(most, _mm256_max_ps(least, x));
  }
  QUENCH_AVX512 static void store(float* to, Register x, std::int64_t count) {
    const auto there = static_cast<__mmask8>(0xFF >> (kLanes - std::min(count, kLanes)));
    _mm256_mask_storeu_ps(to, there, x);
  }
};

/// The columns from `first` on of kPixels pixels from `pixel` on.
template <typename Lanes, int kWidth, int kPixels>
QUENCH_AVX512 void multiply_tile(const RowProduct& row, std::int64_t pixel, std::int64_t first) {
  using Register = typename Lanes::Register;
  Register sums[kPixels][kWidth];
  QUENCH_UNROLL
  for (int n = 0; n < kWidth; ++n) {
    const Register start = Lanes::load(row.start + first + Lanes::kLanes * n);
    QUENCH_UNROLL
    for (int i = 0; i < kPixels; ++i) sums[i][n] = start;
  }
  const std::int64_t step = row.step;
  const float* const src = row.src + pixel * step;
  for (const RowTap& tap : row.taps) {
    Register weights[kWidth];
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      weights[n] = Lanes::load(tap.weights + first + Lanes::kLanes * n);
    }
    const float* from = src + tap.offset;
    QUENCH_UNROLL
    for (int i = 0; i < kPixels; ++i, from += step) {
      const Register x = Lanes::spread(*from);
      QUENCH_UNROLL
      for (int n = 0; n < kWidth; ++n) sums[i][n] = Lanes::add(x, weights[n], sums[i][n]);
    }
  }
  const Register least = Lanes::spread(row.least);
  const Register most = Lanes::spread(row.most);
  float* dst = row.dst + pixel * row.stride + first;
  QUENCH_UNROLL
  for (int i = 0; i < kPixels; ++i, dst += row.stride) {
    QUENCH_UNROLL
    for (int n = 0; n < kWidth; ++n) {
      Lanes::store(dst + Lanes::kLanes * n, Lanes::clamp(sums[i][n], least, most),
                   row.columns - first - Lanes::kLanes * n);
    }
  }
}

using TileFunction = void (*)(const RowProduct&, std::int64_t, std::int64_t);

template <typename Lanes, int kWidth, std::size_t... kPixels>
constexpr std::array<TileFunction, sizeof...(kPixels)> by_pixels(std::index_sequence<kPixels...>) {
  return {&multiply_tile<Lanes, kWidth, static_cast<int>(kPixels) + 1>...};
}

template <typename Lanes, int kWidth>
void multiply_panel(const RowProduct& row, std::int64_t first) {
  constexpr int kPixels = tile_pixels(kWidth);
  static constexpr auto kTiles = by_pixels<Lanes, kWidth>(std::make_index_sequence<kPixels>());
  std::int64_t pixel = 0;
  for (; pixel + kPixels <= row.pixels; pixel += kPixels) {
    multiply_tile<Lanes, kWidth, kPixels>(row, pixel, first);
  }
  if (pixel < row.pixels) {
    kTiles[static_cast<std::size_t>(row.pixels - pixel) - 1](row, pixel, first);
  }
}

}  // namespace

bool can_multiply_rows() { return cpu::uses(Isa::Avx512); }

void multiply_row(const RowProduct& row) {
  if (row.columns <= Half::kLanes) return multiply_panel<Half, 1>(row, 0);
  std::int64_t left = (row.columns + kRowLanes - 1) / kRowLanes;
  for (std::int64_t first = 0; left > 0;) {
    // Four are two and two.
    const std::int64_t width = left == kMaxWidth + 1 ? 2 : std::min<std::int64_t>(left, kMaxWidth);
    if (width == 1) multiply_panel<Whole, 1>(row, first);
    if (width == 2) multiply_panel<Whole, 2>(row, first);
    if (width == 3) multiply_panel<Whole, 3>(row, first);
    first += kRowLanes * width;
    left -= width;
  }
}

}  // namespace quench::exec
#else
namespace quench::exec {
bool can_multiply_rows() { return false; }
void multiply_row(const RowProduct&) {}
}  // namespace quench::exec
#endif
