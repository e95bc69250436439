// SPDX-License-Identifier: Apache-2.0
// The inner loop of depthwise convolutions, written for AVX-512 with VNNI: four taps of 64 bytes
// are interleaved once and serve two rows of the result.
#include "exec/engine/int8/depthwise.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define QUENCH_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace quench::exec::avx512 {
namespace {

/// 64 sums: register q holds, of each 16 bytes, those from 4 q to 4 q + 3.
struct Sums {
  __m512i q[4];
};

QUENCH_VNNI inline __m512i load(const void* from) { return _mm512_loadu_si512(from); }

/// The bytes of four taps as groups of four.
QUENCH_VNNI inline Sums interleaved(const std::uint8_t* const* items, std::int64_t at) {
  const __m512i r0 = load(items[0] + at);
  const __m512i r1 = load(items[1] + at);
  const __m512i r2 = load(items[2] + at);
  const __m512i r3 = load(items[3] + at);
  const __m512i a = _mm512_unpacklo_epi8(r0, r1);
  const __m512i b = _mm512_unpackhi_epi8(r0, r1);
  const __m512i c = _mm512_unpacklo_epi8(r2, r3);
  const __m512i d = _mm512_unpackhi_epi8(r2, r3);
  return {{_mm512_unpacklo_epi16(a, c), _mm512_unpackhi_epi16(a, c), _mm512_unpacklo_epi16(b, d),
           _mm512_unpackhi_epi16(b, d)}};
}

QUENCH_VNNI inline void multiply(Sums& sums, const Sums& taps, const std::int8_t* weights) {
  for (int i = 0; i < 4; ++i) {
    sums.q[i] = _mm512_dpbusd_epi32(sums.q[i], taps.q[i], load(weights + 64 * i));
  }
}

template <bool kShifted>
QUENCH_VNNI inline __m512i steps(__m512i sum, const float* scales, const float* shifts) {
  const __m512 real = _mm512_cvtepi32_ps(sum);
  if constexpr (kShifted) {
    return _mm512_cvtps_epi32(
        _mm512_fmadd_ps(real, _mm512_loadu_ps(scales), _mm512_loadu_ps(shifts)));
  }
  return _mm512_cvtps_epi32(_mm512_mul_ps(real, _mm512_loadu_ps(scales)));
}

/// What turns steps into bytes, in registers.
struct Store {
  __m512i zero, low, high, flip;
};

template <bool kShifted>
QUENCH_VNNI inline __m512i bytes(const Sums& sums, const DepthwisePair& pair, std::int64_t at,
                                 const Store& by) {
  __m512i q[4];
  for (int i = 0; i < 4; ++i) {
    q[i] = steps<kShifted>(sums.q[i], pair.scales + at + 16 * i,
                           kShifted ? pair.shifts + at + 16 * i : nullptr);
  }
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), by.zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), by.zero);
  const __m512i packed = _mm512_packus_epi16(low, high);
  return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(packed, by.low), by.high), by.flip);
}

QUENCH_VNNI inline void put(std::uint8_t* dst, __m512i bytes, std::int64_t left) {
  if (left >= 64) return _mm512_storeu_si512(dst, bytes);
  std::uint8_t whole[64];
  _mm512_storeu_si512(whole, bytes);
  std::memcpy(dst, whole, static_cast<std::size_t>(left));
}

template <bool kShifted>
QUENCH_VNNI void run(const DepthwisePair& pair, std::uint8_t* first, std::uint8_t* second,
                     std::int64_t size) {
  const Store by = {_mm512_set1_epi16(static_cast<short>(pair.store.zero)),
                    _mm512_set1_epi8(static_cast<char>(static_cast<int>(pair.store.low))),
                    _mm512_set1_epi8(static_cast<char>(static_cast<int>(pair.store.high))),
                    _mm512_set1_epi8(static_cast<char>(pair.store.flip))};
  std::int64_t set = 0;
  for (std::int64_t at = 0; at < size; at += 64) {
    Sums above;
    Sums below;
    for (int i = 0; i < 4; ++i) {
      above.q[i] = load(pair.sums + 64 * set + 16 * i);
      below.q[i] = above.q[i];
    }
    const std::int8_t* weights = pair.weights + set * pair.set_weights;
    for (std::int64_t g = 0; g < pair.groups; ++g) {
      const Sums taps = interleaved(pair.items + 4 * g, at);
      if ((pair.uses[g] & 1) != 0) {
        multiply(above, taps, weights);
        weights += 256;
      }
      if ((pair.uses[g] & 2) != 0) {
        multiply(below, taps, weights);
        weights += 256;
      }
    }
    put(first + at, bytes<kShifted>(above, pair, 64 * set, by), size - at);
    if (second != nullptr) put(second + at, bytes<kShifted>(below, pair, 64 * set, by), size - at);
    if (++set == pair.sets) set = 0;
  }
}

}  // namespace

bool has_depthwise() {
  static const bool kHas =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  return kHas;
}

void depthwise_pair(const DepthwisePair& pair, std::uint8_t* first, std::uint8_t* second,
                    std::int64_t size) {
  if (pair.shifts != nullptr) return run<true>(pair, first, second, size);
  run<false>(pair, first, second, size);
}

}  // namespace quench::exec::avx512
#endif
