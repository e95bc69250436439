// SPDX-License-Identifier: Apache-2.0
// Rows normalised with AVX-512: their range is found while they are written.
#include "base/cpu.h"
#include "exec/engine/kernels/rows.h"

#if defined(QUENCH_X86)
#include <immintrin.h>

#include <cmath>

namespace quench::exec {
namespace {

constexpr std::int64_t kLanes = 16;
/// Sums in so many registers do not wait for each other.
constexpr std::int64_t kChains = 4;

QUENCH_AVX512 inline __mmask16 first_lanes(std::int64_t count) {
  return count >= kLanes ? static_cast<__mmask16>(-1)
                         : static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
}

QUENCH_AVX512 inline float total(const __m512* sums) {
  return _mm512_reduce_add_ps(
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

QUENCH_AVX512 float sum_row(const float* src, std::int64_t columns) {
  __m512 sums[kChains] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                          _mm512_setzero_ps()};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= columns; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int n = 0; n < kChains; ++n) {
      sums[n] = _mm512_add_ps(sums[n], _mm512_loadu_ps(src + i + n * kLanes));
    }
  }
  for (; i < columns; i += kLanes) {
    sums[0] = _mm512_add_ps(sums[0], _mm512_maskz_loadu_ps(first_lanes(columns - i), src + i));
  }
  return total(sums);
}

QUENCH_AVX512 float sum_squares(const float* src, float mean, std::int64_t columns) {
  const __m512 middle = _mm512_set1_ps(mean);
  __m512 sums[kChains] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                          _mm512_setzero_ps()};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= columns; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int n = 0; n < kChains; ++n) {
      const __m512 x = _mm512_sub_ps(_mm512_loadu_ps(src + i + n * kLanes), middle);
      sums[n] = _mm512_fmadd_ps(x, x, sums[n]);
    }
  }
  for (; i < columns; i += kLanes) {
    const __mmask16 there = first_lanes(columns - i);
    const __m512 x = _mm512_maskz_sub_ps(there, _mm512_maskz_loadu_ps(there, src + i), middle);
    sums[0] = _mm512_fmadd_ps(x, x, sums[0]);
  }
  return total(sums);
}

/// What a row is normalised by.
struct Factors {
  __m512 mean, by;
};

QUENCH_AVX512 void normalize(const float* src, const RowNorm& norm, const Factors& factors,
                             float* dst, std::int64_t columns, Extent& extent) {
  __m512 low = _mm512_load_ps(extent.low.data());
  __m512 high = _mm512_load_ps(extent.high.data());
  for (std::int64_t i = 0; i < columns; i += kLanes) {
    const __mmask16 there = first_lanes(columns - i);
    const __m512 scale = _mm512_maskz_loadu_ps(there, norm.scale + i);
    const __m512 x = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, src + i), factors.mean);
    __m512 y = _mm512_mul_ps(_mm512_mul_ps(x, factors.by), scale);
    if (norm.bias != nullptr) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(there, norm.bias + i));
    if (columns - i >= kLanes) {
      _mm512_storeu_ps(dst + i, y);
    } else {
      _mm512_mask_storeu_ps(dst + i, there, y);
    }
    // The second operand wins against a NaN.
    low = _mm512_mask_min_ps(low, there, y, low);
    high = _mm512_mask_max_ps(high, there, y, high);
  }
  _mm512_store_ps(extent.low.data(), low);
  _mm512_store_ps(extent.high.data(), high);
}

QUENCH_AVX512 void norm_row(const float* src, const RowNorm& norm, float* dst, std::int64_t columns,
                            Extent& extent) {
  const auto count = static_cast<float>(columns);
  const float mean = sum_row(src, columns) / count;
  const float variance = sum_squares(src, mean, columns) / count;
  const Factors factors{_mm512_set1_ps(mean),
                        _mm512_set1_ps(1.0F / std::sqrt(variance + norm.epsilon))};
  normalize(src, norm, factors, dst, columns, extent);
}

}  // namespace

bool layer_norm_avx512(const float* src, const RowNorm& norm, float* dst, std::int64_t columns,
                       Extent& extent) {
  if (!cpu::uses(Isa::Avx512)) return false;
  norm_row(src, norm, dst, columns, extent);
  return true;
}

}  // namespace quench::exec
#else
namespace quench::exec {
bool layer_norm_avx512(const float*, const RowNorm&, float*, std::int64_t, Extent&) {
  return false;
}
}  // namespace quench::exec
#endif
