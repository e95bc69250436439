// SPDX-License-Identifier: Apache-2.0
// The inner loop of depthwise convolutions, written for AVX-512 with VNNI: four taps of 64 bytes
// are interleaved once and serve two rows of the result.
#include "base/cpu.h"
#include "exec/engine/int8/depthwise.h"

#if defined(QUENCH_X86)
#include <immintrin.h>

#include <cstring>

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

/// Blocks that have the same weights: those are loaded once for all.
template <int kCount>
QUENCH_VNNI inline void multiply(Sums* sums, const Sums* taps, const std::int8_t* weights) {
  for (int i = 0; i < 4; ++i) {
    __m512i four = load(weights + 64 * i);
    asm("" : "+v"(four));  // or g++ loads it for every block
    for (int n = 0; n < kCount; ++n) {
      sums[n].q[i] = _mm512_dpbusd_epi32(sums[n].q[i], taps[n].q[i], four);
    }
  }
}

/// What is done to sums: all there is, all but shifts, or only what saturates to bytes.
enum class Form { Shifted, Plain, Bare };

template <Form kForm>
QUENCH_VNNI inline __m512i steps(__m512i sum, const float* scales, const float* shifts) {
  const __m512 floats = _mm512_cvtepi32_ps(sum);
  if constexpr (kForm == Form::Shifted) {
    return _mm512_cvtps_epi32(
        _mm512_fmadd_ps(floats, _mm512_loadu_ps(scales), _mm512_loadu_ps(shifts)));
  }
  return _mm512_cvtps_epi32(_mm512_mul_ps(floats, _mm512_loadu_ps(scales)));
}

/// What turns quotients into bytes, in registers.
struct Store {
  __m512i zero, low, high, flip;
};

template <Form kForm>
QUENCH_VNNI inline __m512i bytes(const Sums& sums, const DepthwisePair& pair, std::int64_t at,
                                 const Store& by) {
  __m512i q[4];
  for (int i = 0; i < 4; ++i) {
    q[i] = steps<kForm>(sums.q[i], pair.scales + at + 16 * i,
                        kForm == Form::Shifted ? pair.shifts + at + 16 * i : nullptr);
  }
  if constexpr (kForm == Form::Bare) {
    return _mm512_packus_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3]));
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

/// Where the results go; the second row may be null.
struct Rows {
  std::uint8_t* first;
  std::uint8_t* second;
  std::int64_t size;
};

/// `kCount` blocks, `apart` bytes from each other, and their part of the weights.
struct Place {
  std::int64_t at;
  std::int64_t apart;
  std::int64_t set;
};

template <Form kForm, int kCount>
QUENCH_VNNI inline void run_blocks(const DepthwisePair& pair, const Rows& rows, Place place,
                                   const Store& by) {
  Sums above[kCount];
  Sums below[kCount];
  for (int i = 0; i < 4; ++i) {
    const __m512i start = load(pair.sums + 64 * place.set + 16 * i);
    for (int n = 0; n < kCount; ++n) above[n].q[i] = below[n].q[i] = start;
  }
  const std::int8_t* weights = pair.weights + place.set * pair.set_weights;
  for (std::int64_t g = 0; g < pair.groups; ++g) {
    Sums taps[kCount];
    for (int n = 0; n < kCount; ++n) {
      taps[n] = interleaved(pair.items + 4 * g, place.at + n * place.apart);
    }
    if ((pair.uses[g] & 1) != 0) {
      multiply<kCount>(above, taps, weights);
      weights += 256;
    }
    if ((pair.uses[g] & 2) != 0) {
      multiply<kCount>(below, taps, weights);
      weights += 256;
    }
  }
  for (int n = 0; n < kCount; ++n) {
    const std::int64_t at = place.at + n * place.apart;
    put(rows.first + at, bytes<kForm>(above[n], pair, 64 * place.set, by), rows.size - at);
    if (rows.second == nullptr) continue;
    put(rows.second + at, bytes<kForm>(below[n], pair, 64 * place.set, by), rows.size - at);
  }
}

template <Form kForm>
QUENCH_VNNI void run(const DepthwisePair& pair, const Rows& rows) {
  const Store by = {_mm512_set1_epi16(static_cast<short>(pair.store.zero)),
                    _mm512_set1_epi8(static_cast<char>(static_cast<int>(pair.store.low))),
                    _mm512_set1_epi8(static_cast<char>(static_cast<int>(pair.store.high))),
                    _mm512_set1_epi8(static_cast<char>(pair.store.flip))};
  // Two blocks at a time, half a row apart: so far that they have the same channels.
  const std::int64_t period = 64 * pair.sets;
  const std::int64_t half = rows.size / period / 2 * period;
  std::int64_t set = 0;
  for (std::int64_t at = 0; at < half; at += 64) {
    run_blocks<kForm, 2>(pair, rows, {at, half, set}, by);
    if (++set == pair.sets) set = 0;
  }
  for (std::int64_t at = 2 * half; at < rows.size; at += 64) {
    run_blocks<kForm, 1>(pair, rows, {at, 0, set}, by);
    if (++set == pair.sets) set = 0;
  }
}

}  // namespace

bool has_depthwise() { return cpu::uses(Isa::Vnni); }

/// Pixels whose last, partial block is at most a quarter, a half or a whole one.
template <int kBytes>
QUENCH_VNNI void gather(const PixelLine& line, std::uint8_t flip, std::uint8_t* to) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  const std::uint8_t* from = line.src;
  const std::int64_t whole = line.channels / 64 * 64;
  const auto rest = (__mmask64{1} << static_cast<unsigned>(line.channels - whole)) - 1;
  for (std::int64_t i = 0; i < line.count; ++i) {
    for (std::int64_t c = 0; c < whole; c += 64) {
      _mm512_storeu_si512(to + c, _mm512_xor_si512(load(from + c), flips));
    }
    if constexpr (kBytes == 16) {
      const __m128i last = _mm_maskz_loadu_epi8(static_cast<__mmask16>(rest), from + whole);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + whole),
                       _mm_xor_si128(last, _mm512_castsi512_si128(flips)));
    } else if constexpr (kBytes == 32) {
      const __m256i last = _mm256_maskz_loadu_epi8(static_cast<__mmask32>(rest), from + whole);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + whole),
                          _mm256_xor_si256(last, _mm512_castsi512_si256(flips)));
    } else if constexpr (kBytes == 64) {
      const __m512i last = _mm512_maskz_loadu_epi8(rest, from + whole);
      _mm512_storeu_si512(to + whole, _mm512_xor_si512(last, flips));
    }
    from += line.step;
    to += line.channels;
  }
}

void gather_pixels(const PixelLine& line, std::uint8_t flip, std::uint8_t* to) {
  const std::int64_t rest = line.channels % 64;
  if (rest == 0) return gather<0>(line, flip, to);
  if (rest <= 16) return gather<16>(line, flip, to);
  return rest <= 32 ? gather<32>(line, flip, to) : gather<64>(line, flip, to);
}

void depthwise_pair(const DepthwisePair& pair, std::uint8_t* first, std::uint8_t* second,
                    std::int64_t size) {
  const Rows rows = {first, second, size};
  if (pair.shifts != nullptr) return run<Form::Shifted>(pair, rows);
  const ByteStore& to = pair.store;
  const bool bare = to.zero == 0 && to.low == 0 && to.high == 255 && to.flip == 0;
  return bare ? run<Form::Bare>(pair, rows) : run<Form::Plain>(pair, rows);
}

}  // namespace quench::exec::avx512
#endif
