// SPDX-License-Identifier: Apache-2.0
// Dequantises the sums of a tile with AVX-512.
#include "base/cpu.h"
#include "exec/engine/int8/finish.h"

#if defined(QUENCH_X86)
#include <cmath>

#include "exec/engine/int8/finish_lanes.h"

namespace quench::exec {
namespace {

using lanes::kLanes;

QUENCH_AVX512 inline void write_floats(float* dst, __m512 x, std::int64_t count) {
  if (count >= kLanes) return _mm512_storeu_ps(dst, x);
  _mm512_mask_storeu_ps(dst, static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U), x);
}

QUENCH_AVX512 inline __m512 bounded(__m512 x, const Finish& finish) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  x = _mm512_mask_mul_ps(x, negative, x, _mm512_set1_ps(finish.slope));
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

}  // namespace quench::exec
#else
namespace quench::exec {
void finish_floats(const Finish&, const FinishedTile&) {}
}  // namespace quench::exec
#endif
