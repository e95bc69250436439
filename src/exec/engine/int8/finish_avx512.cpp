// SPDX-License-Identifier: Apache-2.0
// The epilogue of a tile with AVX-512: sums become floats, or bytes where negative ones have a
// slope of their own.
#include "base/cpu.h"
#include "exec/engine/int8/finish.h"

#if defined(QUENCH_X86)
#include <cmath>

#include "exec/engine/int8/finish_lanes.h"

namespace quench::exec {
namespace {

using lanes::kLanes;

QUENCH_AVX512 inline __m512 sloped(__m512 x, __m512 slope) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(x, negative, x, slope);
}

template <int kWidth>
QUENCH_AVX512 void to_bytes(const Finish& finish, const FinishedTile& tile) {
  const lanes::Out out = lanes::registers(finish.out);
  const __m512 slope = _mm512_set1_ps(finish.slope);
  const float* scales = finish.scales.data() + tile.column;
  const float* shifts = finish.shifts.data() + tile.column;
  auto* dst = static_cast<std::uint8_t*>(tile.dst);
  for (int i = 0; i < tile.rows; ++i) {
    __m512i whole[lanes::kMaxWidth] = {};
#pragma GCC unroll 4
    for (int n = 0; n < kWidth; ++n) {
      const __m512i sums = _mm512_loadu_si512(tile.sums + kLanes * (i * kWidth + n));
      const __m512 x = lanes::scaled(sums, scales + kLanes * n, shifts + kLanes * n);
      whole[n] = _mm512_cvtps_epi32(sloped(x, slope));
    }
    lanes::write<kWidth>(dst + i * tile.stride, lanes::packed(whole, out), tile.columns);
  }
}

QUENCH_AVX512 inline void write_floats(float* dst, __m512 x, std::int64_t count) {
  if (count >= kLanes) return _mm512_storeu_ps(dst, x);
  _mm512_mask_storeu_ps(dst, static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U), x);
}

QUENCH_AVX512 inline __m512 bounded(__m512 x, const Finish& finish) {
  x = sloped(x, _mm512_set1_ps(finish.slope));
  // The second operand wins against a NaN: that must stay.
  return _mm512_min_ps(_mm512_set1_ps(finish.most), _mm512_max_ps(_mm512_set1_ps(finish.least), x));
}

/// With bounds and a slope behind the scales, or without.
template <bool kBounds>
QUENCH_AVX512 void to_floats(const Finish& finish, const FinishedTile& tile) {
  for (std::int64_t n = 0; n < tile.width; ++n) {
    const std::int64_t at = kLanes * n;
    const std::int64_t left = tile.columns - at;
    if (left <= 0) break;
    const float* scales = finish.scales.data() + tile.column + at;
    const float* shifts = finish.shifts.data() + tile.column + at;
    const std::int32_t* sums = tile.sums + at;
    auto* dst = static_cast<float*>(tile.dst) + at;
    for (int i = 0; i < tile.rows; ++i, sums += kLanes * tile.width, dst += tile.stride) {
      __m512 x = lanes::scaled(_mm512_loadu_si512(sums), scales, shifts);
      if constexpr (kBounds) x = bounded(x, finish);
      write_floats(dst, x, left);
    }
  }
}

}  // namespace

void finish_floats(const Finish& finish, const FinishedTile& tile) {
  const bool bounds =
      finish.slope != 1 || std::isfinite(finish.least) || std::isfinite(finish.most);
  bounds ? to_floats<true>(finish, tile) : to_floats<false>(finish, tile);
}

void finish_tile(const Finish& finish, const FinishedTile& tile) {
  if (finish.floats) return finish_floats(finish, tile);
  switch (tile.width) {
    case 1:
      return to_bytes<1>(finish, tile);
    case 2:
      return to_bytes<2>(finish, tile);
    case 3:
      return to_bytes<3>(finish, tile);
    default:
      return to_bytes<4>(finish, tile);
  }
}

}  // namespace quench::exec
#else
namespace quench::exec {
void finish_tile(const Finish&, const FinishedTile&) {}
void finish_floats(const Finish&, const FinishedTile&) {}
}  // namespace quench::exec
#endif
