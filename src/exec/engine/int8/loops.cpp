// SPDX-License-Identifier: Apache-2.0
// Loops over bytes.
#include "exec/engine/int8/loops.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/cpu.h"
#include "exec/engine/int8/loops_avx512.h"

namespace quench::exec {
namespace {

using FloatPair = std::pair<float, float>;  // a comma less for the macro

/// Rounds half to even: the sum has no bits left for fractions. Right below 2^22.
inline float round_even(float x) {
  constexpr float kMagic = 12582912.0F;
  return (x + kMagic) - kMagic;
}

/// Clamped first, so that the rounding trick and the conversion see small numbers; NaN becomes the
/// zero point.
inline std::uint8_t store_byte(float steps, const ByteStore& store) {
  constexpr float kFar = 1024.0F;
  float x = steps == steps ? steps : 0.0F;
  x = x < -kFar ? -kFar : x;
  x = x > kFar ? kFar : x;
  x = round_even(x) + store.zero;
  x = x < store.low ? store.low : x;
  x = x > store.high ? store.high : x;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(x) ^ store.flip);
}

inline float load_byte(std::uint8_t byte, std::uint8_t flip) {
  return static_cast<float>(static_cast<std::int32_t>(byte ^ flip));
}

QUENCH_MULTIVERSION(void, quantize_anywhere,
                    (const float* src, float scale, const ByteStore& store, std::uint8_t* dst,
                     std::int64_t size),
                    (src, scale, store, dst, size)) {
  const ByteStore keep = store;
  for (std::int64_t i = 0; i < size; ++i) dst[i] = store_byte(src[i] / scale, keep);
}

QUENCH_MULTIVERSION(void, quantize_planes_anywhere,
                    (const float* src, std::int64_t stride, std::int64_t channels, float scale,
                     const ByteStore& store, std::uint8_t* dst, std::int64_t size),
                    (src, stride, channels, scale, store, dst, size)) {
  const ByteStore keep = store;
  constexpr std::int64_t kBlock = 256;
  std::uint8_t line[kBlock];
  for (std::int64_t first = 0; first < size; first += kBlock) {
    const std::int64_t count = std::min(kBlock, size - first);
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* plane = src + c * stride + first;
      for (std::int64_t i = 0; i < count; ++i) line[i] = store_byte(plane[i] / scale, keep);
      std::uint8_t* to = dst + first * channels + c;
      for (std::int64_t i = 0; i < count; ++i) to[i * channels] = line[i];
    }
  }
}

QUENCH_MULTIVERSION(void, add_anywhere,
                    (const std::uint8_t* a, const std::uint8_t* b, const ByteSum& sum,
                     const ByteStore& store, std::uint8_t* dst, std::int64_t size),
                    (a, b, sum, store, dst, size)) {
  const ByteStore keep = store;
  const ByteSum by = sum;
  for (std::int64_t i = 0; i < size; ++i) {
    const float second = load_byte(b[i], by.flip_b) * by.scale_b + by.shift;
    dst[i] = store_byte(load_byte(a[i], by.flip_a) * by.scale_a + second, keep);
  }
}

QUENCH_MULTIVERSION(void, mul_anywhere,
                    (const std::uint8_t* a, const ByteLoad& load_a, const std::uint8_t* b,
                     const ByteLoad& load_b, const ByteStore& store, std::uint8_t* dst,
                     std::int64_t size),
                    (a, load_a, b, load_b, store, dst, size)) {
  const ByteStore keep = store;
  const ByteLoad first = load_a;
  const ByteLoad second = load_b;
  for (std::int64_t i = 0; i < size; ++i) {
    const float x = load_byte(a[i], first.flip) - first.shift;
    const float y = load_byte(b[i], second.flip) - second.shift;
    dst[i] = store_byte(x * y * first.scale, keep);
  }
}

QUENCH_MULTIVERSION(void, sum_rows_anywhere,
                    (const std::uint8_t* src, std::uint8_t flip, const RowShape& shape,
                     std::int32_t* sums),
                    (src, flip, shape, sums)) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::uint8_t* line = src + row * shape.columns;
    for (std::int64_t i = 0; i < shape.columns; ++i) {
      sums[i] += static_cast<std::uint8_t>(line[i] ^ flip);
    }
  }
}

QUENCH_MULTIVERSION(void, mul_rows_anywhere,
                    (const std::uint8_t* a, const ByteLoad& load, const float* factors,
                     const ByteStore& store, std::uint8_t* dst, const RowShape& shape),
                    (a, load, factors, store, dst, shape)) {
  const ByteStore keep = store;
  const ByteLoad first = load;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t i = 0; i < shape.columns; ++i) {
      const float x = load_byte(a[row * shape.columns + i], first.flip) - first.shift;
      dst[row * shape.columns + i] = store_byte(x * factors[i] * first.scale, keep);
    }
  }
}

}  // namespace

QUENCH_MULTIVERSION(void, dequantize_loop,
                    (const std::uint8_t* src, std::uint8_t flip, float zero, float scale,
                     float* dst, std::int64_t size),
                    (src, flip, zero, scale, dst, size)) {
  for (std::int64_t i = 0; i < size; ++i) dst[i] = (load_byte(src[i], flip) - zero) * scale;
}

QUENCH_MULTIVERSION(FloatPair, extent_loop, (const float* src, std::int64_t size), (src, size)) {
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  constexpr std::int64_t kLanes = 32;
  float lows[kLanes];
  float highs[kLanes];
  std::fill_n(lows, kLanes, low);
  std::fill_n(highs, kLanes, high);
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float x = src[i + lane];
      lows[lane] = x < lows[lane] ? x : lows[lane];
      highs[lane] = x > highs[lane] ? x : highs[lane];
    }
  }
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    low = std::min(low, lows[lane]);
    high = std::max(high, highs[lane]);
  }
  for (; i < size; ++i) {
    low = std::min(low, src[i]);
    high = std::max(high, src[i]);
  }
  return {low, high};
}

void quantize_loop(const float* src, float scale, const ByteStore& store, std::uint8_t* dst,
                   std::int64_t size) {
  const auto run = cpu::uses(Isa::Avx512) ? avx512::quantize : quantize_anywhere;
  run(src, scale, store, dst, size);
}

void quantize_planes_loop(const float* src, std::int64_t stride, std::int64_t channels, float scale,
                          const ByteStore& store, std::uint8_t* dst, std::int64_t size) {
  std::int64_t done = 0;
  if (channels == 3 && cpu::uses(Isa::Avx512)) {
    done = avx512::quantize_rgb(src, stride, scale, store, dst, size);
  }
  quantize_planes_anywhere(src + done, stride, channels, scale, store, dst + done * channels,
                           size - done);
}

void add_loop(const std::uint8_t* a, const std::uint8_t* b, const ByteSum& sum,
              const ByteStore& store, std::uint8_t* dst, std::int64_t size) {
  const auto run = cpu::uses(Isa::Avx512) ? avx512::add : add_anywhere;
  run(a, b, sum, store, dst, size);
}

void mul_loop(const std::uint8_t* a, const ByteLoad& load_a, const std::uint8_t* b,
              const ByteLoad& load_b, const ByteStore& store, std::uint8_t* dst,
              std::int64_t size) {
  const auto run = cpu::uses(Isa::Avx512) ? avx512::mul : mul_anywhere;
  run(a, load_a, b, load_b, store, dst, size);
}

void look_up_loop(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                  std::int64_t size) {
  if (cpu::uses(Isa::Vbmi)) return avx512::look_up(table, src, dst, size);
  for (std::int64_t i = 0; i < size; ++i) dst[i] = table[src[i]];
}

void look_up_channels_loop(const std::uint8_t* tables, std::int64_t channels,
                           const std::uint8_t* src, std::uint8_t* dst, std::int64_t rows) {
  constexpr std::int64_t kUnrolled = 8;
  constexpr std::int64_t kTable = 256;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t* table = tables;
    std::int64_t c = 0;
    for (; c + kUnrolled <= channels; c += kUnrolled, table += kUnrolled * kTable) {
      // Read first: the compiler must assume that writing changes what is read.
      std::uint8_t found[kUnrolled];
      for (std::int64_t i = 0; i < kUnrolled; ++i) found[i] = table[i * kTable + src[c + i]];
      std::memcpy(dst + c, found, sizeof found);
    }
    for (; c < channels; ++c, table += kTable) dst[c] = table[src[c]];
    src += channels;
    dst += channels;
  }
}

void look_up_rows_loop(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                       const RowShape& shape, std::int64_t stride) {
  constexpr std::int64_t kRegister = 64;
  if (shape.columns >= kRegister && cpu::uses(Isa::Vbmi)) {
    return avx512::look_up_rows(table, src, dst, shape, stride);
  }
  // Short rows: all of them at once, then each to its place.
  constexpr std::int64_t kBlock = 4096;
  std::uint8_t looked_up[kBlock];
  const std::int64_t most =
      std::max<std::int64_t>(kBlock / std::max<std::int64_t>(shape.columns, 1), 1);
  for (std::int64_t row = 0; row < shape.rows; row += most) {
    const std::int64_t rows = std::min(most, shape.rows - row);
    const std::uint8_t* from = src + row * shape.columns;
    if (shape.columns > kBlock) {
      look_up_loop(table, from, dst + row * stride, shape.columns);
      continue;
    }
    look_up_loop(table, from, looked_up, rows * shape.columns);
    copy_rows_loop(looked_up, dst + row * stride, {.rows = rows, .columns = shape.columns}, stride);
  }
}

void copy_rows_loop(const std::uint8_t* src, std::uint8_t* dst, const RowShape& shape,
                    std::int64_t stride) {
  constexpr std::int64_t kRegister = 16;
  const std::int64_t columns = shape.columns;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    if (columns < kRegister) {
      std::memcpy(dst, src, static_cast<std::size_t>(columns));
    } else {
      for (std::int64_t i = 0; i + kRegister <= columns; i += kRegister) {
        std::memcpy(dst + i, src + i, kRegister);
      }
      std::memcpy(dst + columns - kRegister, src + columns - kRegister, kRegister);
    }
    src += columns;
    dst += stride;
  }
}

void mul_rows_loop(const std::uint8_t* a, const ByteLoad& load, const float* factors,
                   const ByteStore& store, std::uint8_t* dst, const RowShape& shape) {
  const auto run = cpu::uses(Isa::Avx512) ? avx512::mul_rows : mul_rows_anywhere;
  run(a, load, factors, store, dst, shape);
}

void sum_rows_loop(const std::uint8_t* src, std::uint8_t flip, const RowShape& shape,
                   std::int32_t* sums) {
  const auto run = cpu::uses(Isa::Avx512) ? avx512::sum_rows : sum_rows_anywhere;
  run(src, flip, shape, sums);
}

}  // namespace quench::exec
