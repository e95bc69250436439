// SPDX-License-Identifier: Apache-2.0
// The hot loops over bytes, written for AVX-512: compilers make them four times as slow.
#include "exec/engine/int8/loops_avx512.h"

#include "base/cpu.h"

#if defined(QUENCH_X86)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "exec/engine/int8/loops.h"

namespace quench::exec::avx512 {
namespace {

/// What `store` needs in registers.
struct Store {
  __m512i zero, low, high;
  __m128i flip;
};

QUENCH_AVX512 inline Store registers(const ByteStore& store) {
  return {_mm512_set1_epi32(static_cast<int>(store.zero)),
          _mm512_set1_epi32(static_cast<int>(store.low)),
          _mm512_set1_epi32(static_cast<int>(store.high)),
          _mm_set1_epi8(static_cast<char>(store.flip))};
}

QUENCH_AVX512 inline __m512 load(__m128i bytes, __m128i flip) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_xor_si128(bytes, flip)));
}

/// Rounds half to even, moves, saturates. Far numbers are clamped first: the conversion has no room
/// for them.
QUENCH_AVX512 inline __m128i store(__m512 steps, const Store& by) {
  const __m512 far = _mm512_set1_ps(1024.0F);
  const __m512 near =
      _mm512_max_ps(_mm512_min_ps(steps, far), _mm512_sub_ps(_mm512_setzero_ps(), far));
  const __m512i moved = _mm512_add_epi32(_mm512_cvtps_epi32(near), by.zero);
  const __m512i kept = _mm512_min_epi32(_mm512_max_epi32(moved, by.low), by.high);
  return _mm_xor_si128(_mm512_cvtepi32_epi8(kept), by.flip);
}

QUENCH_AVX512 inline __m128i read(const std::uint8_t* src) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
}

QUENCH_AVX512 inline void write(std::uint8_t* dst, __m128i bytes) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), bytes);
}

/// Calls `loop` for the last, partial block by way of a whole one: masked stores of bytes are slow.
template <typename Loop>
inline void last_block(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* dst,
                       std::int64_t left, const Loop& loop) {
  std::uint8_t whole_a[16] = {};
  std::uint8_t whole_b[16] = {};
  std::uint8_t result[16];
  std::memcpy(whole_a, a, static_cast<std::size_t>(left));
  std::memcpy(whole_b, b, static_cast<std::size_t>(left));
  loop(whole_a, whole_b, result);
  std::memcpy(dst, result, static_cast<std::size_t>(left));
}

/// Three registers of 16 bytes as 48 interleaved ones.
QUENCH_AVX512 inline void interleave3(const __m128i* planes, std::uint8_t* dst) {
  alignas(16) static constexpr signed char kPick[3][3][16] = {
      {{0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
       {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
       {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1}},
      {{-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
       {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
       {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1}},
      {{-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
       {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
       {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}}};
  for (int part = 0; part < 3; ++part) {
    __m128i out = _mm_setzero_si128();
    for (int c = 0; c < 3; ++c) {
      const __m128i pick = _mm_load_si128(reinterpret_cast<const __m128i*>(kPick[part][c]));
      out = _mm_or_si128(out, _mm_shuffle_epi8(planes[c], pick));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 16 * part), out);
  }
}

}  // namespace

QUENCH_AVX512 void add(const std::uint8_t* a, const std::uint8_t* b, const ByteSum& sum,
                       const ByteStore& to, std::uint8_t* dst, std::int64_t size) {
  const Store by = registers(to);
  const __m128i flip_a = _mm_set1_epi8(static_cast<char>(sum.flip_a));
  const __m128i flip_b = _mm_set1_epi8(static_cast<char>(sum.flip_b));
  const __m512 scale_a = _mm512_set1_ps(sum.scale_a);
  const __m512 scale_b = _mm512_set1_ps(sum.scale_b);
  const __m512 shift = _mm512_set1_ps(sum.shift);
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    const __m512 second = _mm512_fmadd_ps(load(read(b + i), flip_b), scale_b, shift);
    write(dst + i, store(_mm512_fmadd_ps(load(read(a + i), flip_a), scale_a, second), by));
  }
  if (i == size) return;
  last_block(a + i, b + i, dst + i, size - i,
             [&](const std::uint8_t* x, const std::uint8_t* y, std::uint8_t* out) {
               add(x, y, sum, to, out, 16);
             });
}

QUENCH_AVX512 void mul(const std::uint8_t* a, const ByteLoad& load_a, const std::uint8_t* b,
                       const ByteLoad& load_b, const ByteStore& to, std::uint8_t* dst,
                       std::int64_t size) {
  const Store by = registers(to);
  const __m128i flip_a = _mm_set1_epi8(static_cast<char>(load_a.flip));
  const __m128i flip_b = _mm_set1_epi8(static_cast<char>(load_b.flip));
  const __m512 shift_a = _mm512_set1_ps(load_a.shift);
  const __m512 shift_b = _mm512_set1_ps(load_b.shift);
  const __m512 scale = _mm512_set1_ps(load_a.scale);
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    const __m512 x = _mm512_sub_ps(load(read(a + i), flip_a), shift_a);
    const __m512 y = _mm512_sub_ps(load(read(b + i), flip_b), shift_b);
    write(dst + i, store(_mm512_mul_ps(_mm512_mul_ps(x, y), scale), by));
  }
  if (i == size) return;
  last_block(a + i, b + i, dst + i, size - i,
             [&](const std::uint8_t* x, const std::uint8_t* y, std::uint8_t* out) {
               mul(x, load_a, y, load_b, to, out, 16);
             });
}

QUENCH_AVX512 void quantize(const float* src, float scale, const ByteStore& to, std::uint8_t* dst,
                            std::int64_t size) {
  const Store by = registers(to);
  const __m512 step = _mm512_set1_ps(scale);
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    write(dst + i, store(_mm512_div_ps(_mm512_loadu_ps(src + i), step), by));
  }
  if (i == size) return;
  float whole[16] = {};
  std::uint8_t result[16];
  std::memcpy(whole, src + i, static_cast<std::size_t>(size - i) * sizeof(float));
  write(result, store(_mm512_div_ps(_mm512_loadu_ps(whole), step), by));
  std::memcpy(dst + i, result, static_cast<std::size_t>(size - i));
}

QUENCH_AVX512 std::int64_t quantize_rgb(const float* src, std::int64_t stride, float scale,
                                        const ByteStore& to, std::uint8_t* dst, std::int64_t size) {
  const Store by = registers(to);
  const __m512 step = _mm512_set1_ps(scale);
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    __m128i planes[3];
    for (int c = 0; c < 3; ++c) {
      planes[c] = store(_mm512_div_ps(_mm512_loadu_ps(src + c * stride + i), step), by);
    }
    interleave3(planes, dst + 3 * i);
  }
  return i;
}

/// A table in registers.
struct Table {
  __m512i part[4];
};

QUENCH_VBMI static inline Table load_table(const std::uint8_t* table) {
  return {{_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
           _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)}};
}

QUENCH_VBMI static inline void look_up_64(const Table& table, const std::uint8_t* src,
                                          std::uint8_t* dst) {
  const __m512i x = _mm512_loadu_si512(src);
  const __m512i low = _mm512_permutex2var_epi8(table.part[0], x, table.part[1]);
  const __m512i high = _mm512_permutex2var_epi8(table.part[2], x, table.part[3]);
  _mm512_storeu_si512(dst, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
}

QUENCH_VBMI void look_up(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                         std::int64_t size) {
  const Table registers = load_table(table);
  std::int64_t i = 0;
  for (; i + 64 <= size; i += 64) look_up_64(registers, src + i, dst + i);
  for (; i < size; ++i) dst[i] = table[src[i]];
}

QUENCH_VBMI void look_up_rows(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                              const RowShape& shape, std::int64_t stride) {
  const Table registers = load_table(table);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t i = 0; i + 64 <= shape.columns; i += 64) {
      look_up_64(registers, src + i, dst + i);
    }
    // The last ones once more, where they are no whole register.
    if (shape.columns % 64 != 0) {
      look_up_64(registers, src + shape.columns - 64, dst + shape.columns - 64);
    }
    src += shape.columns;
    dst += stride;
  }
}

/// Bytes one after the other, whose factors come round again after `period` of them, a whole number
/// of sixteen.
struct Stream {
  std::int64_t size = 0;
  std::int64_t period = 0;
};

QUENCH_AVX512 static void mul_stream(const std::uint8_t* a, const ByteLoad& load_a,
                                     const float* factors, const ByteStore& to, std::uint8_t* dst,
                                     Stream stream) {
  const Store by = registers(to);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(load_a.flip));
  const __m512 shift = _mm512_set1_ps(load_a.shift);
  const __m512 scale = _mm512_set1_ps(load_a.scale);
  std::int64_t at = 0;
  const auto block = [&](const std::uint8_t* from, std::uint8_t* into) QUENCH_AVX512 {
    const __m512 x = _mm512_sub_ps(load(read(from), flip), shift);
    const __m512 product = _mm512_mul_ps(x, _mm512_loadu_ps(factors + at));
    write(into, store(_mm512_mul_ps(product, scale), by));
  };
  std::int64_t i = 0;
  for (; i + 16 <= stream.size; i += 16) {
    block(a + i, dst + i);
    at += 16;
    if (at == stream.period) at = 0;
  }
  const auto left = static_cast<std::size_t>(stream.size - i);
  if (left == 0) return;
  std::uint8_t last[16] = {};
  std::memcpy(last, a + i, left);
  block(last, last);
  std::memcpy(dst + i, last, left);
}

void mul_rows(const std::uint8_t* a, const ByteLoad& load_a, const float* factors,
              const ByteStore& to, std::uint8_t* dst, const RowShape& shape) {
  const std::int64_t size = shape.rows * shape.columns;
  const std::int64_t period = std::lcm(shape.columns, std::int64_t{16});
  if (period == shape.columns) return mul_stream(a, load_a, factors, to, dst, {size, period});
  std::vector<float> repeated;
  while (std::ssize(repeated) < std::min(period, size + 16)) {
    repeated.insert(repeated.end(), factors, factors + shape.columns);
  }
  mul_stream(a, load_a, repeated.data(), to, dst, {size, period});
}

/// The columns that the mask says of 32: sums of 256 bytes fit 16 bits.
QUENCH_AVX512 static void sum_columns(const std::uint8_t* src, __mmask32 there, std::uint8_t flip,
                                      const RowShape& shape, std::int32_t* sums) {
  const __m256i flips = _mm256_maskz_set1_epi8(there, static_cast<char>(flip));
  const auto first = static_cast<__mmask16>(there);
  const auto second = static_cast<__mmask16>(there >> 16U);
  __m512i low = _mm512_maskz_loadu_epi32(first, sums);
  __m512i high = _mm512_maskz_loadu_epi32(second, sums + 16);
  for (std::int64_t row = 0; row < shape.rows; row += 256) {
    __m512i part = _mm512_setzero_si512();
    const std::int64_t stop = row + 256 < shape.rows ? row + 256 : shape.rows;
    for (std::int64_t r = row; r < stop; ++r) {
      const __m256i bytes = _mm256_maskz_loadu_epi8(there, src + r * shape.columns);
      part = _mm512_add_epi16(part, _mm512_cvtepu8_epi16(_mm256_xor_si256(bytes, flips)));
    }
    low = _mm512_add_epi32(low, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(part)));
    high = _mm512_add_epi32(high, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(part, 1)));
  }
  _mm512_mask_storeu_epi32(sums, first, low);
  _mm512_mask_storeu_epi32(sums + 16, second, high);
}

QUENCH_AVX512 void sum_rows(const std::uint8_t* src, std::uint8_t flip, const RowShape& shape,
                            std::int32_t* sums) {
  std::int64_t i = 0;
  for (; i + 32 <= shape.columns; i += 32) {
    sum_columns(src + i, 0xFFFFFFFF, flip, shape, sums + i);
  }
  const auto left = static_cast<unsigned>(shape.columns - i);
  if (left > 0) sum_columns(src + i, (1U << left) - 1U, flip, shape, sums + i);
}

}  // namespace quench::exec::avx512
#endif
