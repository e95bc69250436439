// SPDX-License-Identifier: Apache-2.0
// Scales, adds, rounds and stores the sums of a tile with AVX-512.
#include "exec/engine/int8/finish.h"
#include "exec/engine/kernels/erf.h"

#if defined(__x86_64__)
#include <cstddef>
#include <iterator>

#include "exec/engine/int8/finish_lanes.h"

#define QUENCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace quench::exec {
namespace {

using lanes::kLanes;
using lanes::kMaxWidth;

QUENCH_AVX512 inline __m512 sloped(__m512 x, __m512 slope) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(x, negative, x, slope);
}

struct Residual {
  __m512 scale, shift;
  __m128i flip;
};

QUENCH_AVX512 inline Residual registers(const AddedBytes& bytes) {
  return {_mm512_set1_ps(bytes.scale), _mm512_set1_ps(bytes.shift), _mm_set1_epi32(bytes.flip)};
}

QUENCH_AVX512 inline __m512 read_bytes(const std::uint8_t* bytes, __m128i flip) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_xor_si128(packed, flip)));
}

QUENCH_AVX512 inline __m512 added(__m512 x, const std::uint8_t* bytes, const Residual& by) {
  return _mm512_fmadd_ps(_mm512_sub_ps(read_bytes(bytes, by.flip), by.shift), by.scale, x);
}

/// The grid between two roundings. Numbers are cut to its bounds before they are rounded, which is
/// the same as after it, because bounds are whole.
struct Middle {
  __m512 low, high, zero, scale_a, scale_b, shift;
  bool residual_first;
};

QUENCH_AVX512 inline Middle registers(const MiddleGrid& grid) {
  return {_mm512_set1_ps(grid.low),
          _mm512_set1_ps(grid.high),
          _mm512_set1_ps(grid.zero),
          _mm512_set1_ps(grid.sum.scale_a),
          _mm512_set1_ps(grid.sum.scale_b),
          _mm512_set1_ps(grid.sum.shift),
          grid.residual_first};
}

QUENCH_AVX512 inline __m512 rounded(__m512 x, const Middle& to) {
  const __m512 kept = _mm512_min_ps(_mm512_max_ps(x, to.low), to.high);
  return _mm512_add_ps(_mm512_roundscale_ps(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                       to.zero);
}

/// The sum of flipped bytes, as `add_loop` makes it.
QUENCH_AVX512 inline __m512 summed(__m512 layer, __m512 residual, const Middle& by) {
  const __m512 a = by.residual_first ? residual : layer;
  const __m512 b = by.residual_first ? layer : residual;
  return _mm512_fmadd_ps(a, by.scale_a, _mm512_fmadd_ps(b, by.scale_b, by.shift));
}

template <int kWidth, AddBytes kAdd>
QUENCH_AVX512 void to_bytes(const Finish& finish, const FinishedTile& tile) {
  const lanes::Out out = lanes::registers(finish.out);
  const Residual residual = registers(finish.residual);
  const Middle middle = registers(finish.middle);
  const __m512 slope = _mm512_set1_ps(finish.slope);
  const bool slopes = finish.slope != 1;
  const float* scales = finish.scales.data() + tile.column;
  const float* shifts = finish.shifts.data() + tile.column;
  const auto* other = static_cast<const std::uint8_t*>(tile.residual);
  auto* dst = static_cast<std::uint8_t*>(tile.dst);
  const bool partial = tile.columns < kLanes * kWidth;
  alignas(64) std::uint8_t block[kMaxWidth * kLanes] = {};
  for (int i = 0; i < tile.rows; ++i) {
    const std::uint8_t* beside = other;
    if (kAdd != AddBytes::None && partial) {
      std::memcpy(block, other, static_cast<std::size_t>(tile.columns));
      beside = block;
    }
    __m512i whole[kMaxWidth] = {};
#pragma GCC unroll 4
    for (int n = 0; n < kWidth; ++n) {
      const __m512i sums = _mm512_loadu_si512(tile.sums + kLanes * (i * kWidth + n));
      __m512 x = lanes::scaled(sums, scales + kLanes * n, shifts + kLanes * n);
      if constexpr (kAdd == AddBytes::Once) x = added(x, beside + kLanes * n, residual);
      if (slopes) x = sloped(x, slope);
      if constexpr (kAdd == AddBytes::Twice) {
        x = summed(rounded(x, middle), read_bytes(beside + kLanes * n, residual.flip), middle);
      }
      whole[n] = _mm512_cvtps_epi32(x);
    }
    lanes::write<kWidth>(dst + i * tile.stride, lanes::packed(whole, out), tile.columns);
    if constexpr (kAdd != AddBytes::None) other += tile.stride;
  }
}

QUENCH_AVX512 inline __m512 read_floats(const float* src, std::int64_t count) {
  if (count >= kLanes) return _mm512_loadu_ps(src);
  const auto there = static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  return _mm512_maskz_loadu_ps(there, src);
}

QUENCH_AVX512 inline void write_floats(float* dst, __m512 x, std::int64_t count) {
  if (count >= kLanes) return _mm512_storeu_ps(dst, x);
  _mm512_mask_storeu_ps(dst, static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U), x);
}

/// x * (1 + erf(x / sqrt(2))) / 2.
QUENCH_AVX512 inline __m512 gelu(__m512 given) {
  const __m512 end = _mm512_set1_ps(erf::kEnd);
  const __m512 scaled = _mm512_mul_ps(given, _mm512_set1_ps(0.70710678F));
  // The second operand wins against a NaN.
  const __m512 x = _mm512_min_ps(end, _mm512_max_ps(_mm512_set1_ps(-erf::kEnd), scaled));
  const __m512 t = _mm512_mul_ps(x, x);
  __m512 p = _mm512_set1_ps(erf::kP[0]);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < std::size(erf::kP); ++i) {
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(erf::kP[i]));
  }
  __m512 q = _mm512_set1_ps(erf::kQ[0]);
#pragma GCC unroll 8
  for (std::size_t i = 1; i < std::size(erf::kQ); ++i) {
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(erf::kQ[i]));
  }
  // 1 / q from 14 bits by one step of Newton.
  const __m512 near = _mm512_rcp14_ps(q);
  const __m512 inverse = _mm512_mul_ps(near, _mm512_fnmadd_ps(q, near, _mm512_set1_ps(2.0F)));
  const __m512 erf = _mm512_mul_ps(_mm512_mul_ps(x, p), inverse);
  const __m512 half = _mm512_mul_ps(given, _mm512_set1_ps(0.5F));
  return _mm512_fmadd_ps(half, erf, half);
}

template <bool kGelu>
QUENCH_AVX512 void to_real(const Finish& finish, const FinishedTile& tile) {
  const __m512 least = _mm512_set1_ps(finish.least);
  const __m512 most = _mm512_set1_ps(finish.most);
  const __m512 slope = _mm512_set1_ps(finish.slope);
  const bool slopes = finish.slope != 1;
  const float* scales = finish.scales.data() + tile.column;
  const float* shifts = finish.shifts.data() + tile.column;
  const std::int32_t* sums = tile.sums;
  for (int i = 0; i < tile.rows; ++i) {
    auto* dst = static_cast<float*>(tile.dst) + i * tile.stride;
    for (int n = 0; n < tile.width; ++n, sums += kLanes) {
      const std::int64_t at = kLanes * n;
      if (at >= tile.columns) continue;
      __m512 x = lanes::scaled(_mm512_loadu_si512(sums), scales + at, shifts + at);
      if (tile.residual != nullptr) {
        const auto* residual = static_cast<const float*>(tile.residual) + i * tile.stride;
        x = _mm512_add_ps(x, read_floats(residual + at, tile.columns - at));
      }
      if (slopes) x = sloped(x, slope);
      // The second operand wins against a NaN: that must stay.
      x = _mm512_min_ps(most, _mm512_max_ps(least, x));
      if constexpr (kGelu) x = gelu(x);
      write_floats(dst + at, x, tile.columns - at);
    }
  }
}

template <AddBytes kAdd>
void to_bytes(const Finish& finish, const FinishedTile& tile) {
  switch (tile.width) {
    case 1:
      return to_bytes<1, kAdd>(finish, tile);
    case 2:
      return to_bytes<2, kAdd>(finish, tile);
    case 3:
      return to_bytes<3, kAdd>(finish, tile);
    default:
      return to_bytes<4, kAdd>(finish, tile);
  }
}

}  // namespace

void finish_tile(const Finish& finish, const FinishedTile& tile) {
  if (finish.real) return finish.gelu ? to_real<true>(finish, tile) : to_real<false>(finish, tile);
  switch (finish.add) {
    case AddBytes::None:
      return to_bytes<AddBytes::None>(finish, tile);
    case AddBytes::Once:
      return to_bytes<AddBytes::Once>(finish, tile);
    case AddBytes::Twice:
      return to_bytes<AddBytes::Twice>(finish, tile);
  }
}

}  // namespace quench::exec
#else
namespace quench::exec {
void finish_tile(const Finish&, const FinishedTile&) {}
}  // namespace quench::exec
#endif
