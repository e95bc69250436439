// SPDX-License-Identifier: Apache-2.0
// Sums in registers made bytes, for the files written for AVX-512.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "base/cpu.h"
#include "exec/engine/int8/finish.h"

namespace quench::exec::lanes {

inline constexpr std::int64_t kLanes = 16;
inline constexpr int kMaxWidth = 4;

QUENCH_AVX512 inline __m512 scaled(__m512i sums, const float* scales, const float* shifts) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(scales),
                         _mm512_loadu_ps(shifts));
}

/// How bytes of the result are stored.
struct Out {
  __m512i zero, low, high, flip, order;
};

QUENCH_AVX512 inline Out registers(const BytePattern& to) {
  return {_mm512_set1_epi32(to.zero), _mm512_set1_epi32(to.low), _mm512_set1_epi32(to.high),
          _mm512_set1_epi32(to.flip),
          _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)};
}

/// 64 whole numbers as bytes: 16 bits, where the zero point is added, then 8, both saturated.
QUENCH_AVX512 inline __m512i packed(const __m512i* whole, const Out& to) {
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), to.zero);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), to.zero);
  const __m512i bytes = _mm512_packus_epi16(first, second);
  const __m512i kept = _mm512_min_epu8(_mm512_max_epu8(bytes, to.low), to.high);
  return _mm512_xor_si512(_mm512_permutexvar_epi32(to.order, kept), to.flip);
}

/// The same where saturation is all there is to do.
QUENCH_AVX512 inline __m512i saturated(const __m512i* whole, const Out& to) {
  const __m512i first = _mm512_packs_epi32(whole[0], whole[1]);
  const __m512i second = _mm512_packs_epi32(whole[2], whole[3]);
  return _mm512_permutexvar_epi32(to.order, _mm512_packus_epi16(first, second));
}

/// Stores the first sixteen times `kWidth` bytes.
template <int kWidth>
QUENCH_AVX512 inline void write_whole(std::uint8_t* dst, __m512i bytes) {
  if constexpr (kWidth == 4) {
    _mm512_storeu_si512(dst, bytes);
  } else if constexpr (kWidth == 1) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm512_castsi512_si128(bytes));
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm512_castsi512_si256(bytes));
    if constexpr (kWidth == 3) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 32), _mm512_extracti32x4_epi32(bytes, 2));
    }
  }
}

/// Stores at most `count` of them. Masked stores of bytes are slow.
template <int kWidth>
QUENCH_AVX512 inline void write(std::uint8_t* dst, __m512i bytes, std::int64_t count) {
  if (count >= kWidth * kLanes) return write_whole<kWidth>(dst, bytes);
  alignas(64) std::uint8_t block[kMaxWidth * kLanes];
  _mm512_store_si512(block, bytes);
  std::memcpy(dst, block, static_cast<std::size_t>(count));
}

/// 64 bytes whose part `which` of sixteen times `kWidth` comes first.
template <int kWidth>
QUENCH_AVX512 inline __m512i part(__m512i bytes, int which) {
  if constexpr (kWidth == 1) {
    if (which == 1) return _mm512_castsi128_si512(_mm512_extracti32x4_epi32(bytes, 1));
    if (which == 2) return _mm512_castsi128_si512(_mm512_extracti32x4_epi32(bytes, 2));
    if (which == 3) return _mm512_castsi128_si512(_mm512_extracti32x4_epi32(bytes, 3));
  } else if constexpr (kWidth == 2) {
    if (which == 1) return _mm512_castsi256_si512(_mm512_extracti64x4_epi64(bytes, 1));
  }
  return bytes;
}

}  // namespace quench::exec::lanes
