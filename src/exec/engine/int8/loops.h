// SPDX-License-Identifier: Apache-2.0
// Loops over bytes, made for several generations of processors. Bytes of int8 tensors are flipped
// into those of uint8 on the way in and back on the way out, so that one loop serves both.
#pragma once

#include <cstdint>
#include <utility>

namespace quench::exec {

/// How a quotient by the scale becomes a byte.
struct ByteStore {
  float zero = 0;    ///< of the flipped bytes
  float low = 0;     ///< least flipped byte
  float high = 255;  ///< greatest flipped byte
  std::uint8_t flip = 0;
};

/// A flipped byte times `scale`, less `shift`.
struct ByteLoad {
  float scale = 1;
  float shift = 0;
  std::uint8_t flip = 0;
};

/// The sum of two bytes over the scale of the result: flipped bytes times their scales, and the
/// zero points of all three together. Added in ONNX Runtime's order, so that what lies a hair from
/// the middle of two steps is rounded to the same side.
struct ByteSum {
  float scale_a = 1;
  float scale_b = 1;
  float shift = 0;
  std::uint8_t flip_a = 0;
  std::uint8_t flip_b = 0;
};

/// Rows one after the other.
struct RowShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// dst = round(src / scale) + zero, saturated.
void quantize_loop(const float* src, float scale, const ByteStore& store, std::uint8_t* dst,
                   std::int64_t size);
/// The same from `channels` planes of `size` elements, `stride` apart, to interleaved ones.
void quantize_planes_loop(const float* src, std::int64_t stride, std::int64_t channels, float scale,
                          const ByteStore& store, std::uint8_t* dst, std::int64_t size);
/// dst = (src - zero) * scale.
void dequantize_loop(const std::uint8_t* src, std::uint8_t flip, float zero, float scale,
                     float* dst, std::int64_t size);
/// dst = a + b; the zero point of `store` is 0.
void add_loop(const std::uint8_t* a, const std::uint8_t* b, const ByteSum& sum,
              const ByteStore& store, std::uint8_t* dst, std::int64_t size);
/// dst = a * b; `load_a` carries both scales.
void mul_loop(const std::uint8_t* a, const ByteLoad& load_a, const std::uint8_t* b,
              const ByteLoad& load_b, const ByteStore& store, std::uint8_t* dst, std::int64_t size);
/// dst = table[src]; the table has 256 entries.
void look_up_loop(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                  std::int64_t size);
/// The same for rows of `columns` bytes, whose results lie `stride` apart.
void look_up_rows_loop(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                       const RowShape& shape, std::int64_t stride);
/// Rows copied to places that lie `stride` apart.
void copy_rows_loop(const std::uint8_t* src, std::uint8_t* dst, const RowShape& shape,
                    std::int64_t stride);
/// The same for rows of bytes, one table after the other for each byte of a row.
void look_up_channels_loop(const std::uint8_t* tables, std::int64_t channels,
                           const std::uint8_t* src, std::uint8_t* dst, std::int64_t rows);
/// The least and greatest of `size` numbers; NaN is neither.
std::pair<float, float> extent_loop(const float* src, std::int64_t size);
/// Adds every row of bytes to the sums.
void sum_rows_loop(const std::uint8_t* src, std::uint8_t flip, const RowShape& shape,
                   std::int32_t* sums);
/// dst = a * factors, the same ones for every row; `load` carries the scales.
void mul_rows_loop(const std::uint8_t* a, const ByteLoad& load, const float* factors,
                   const ByteStore& store, std::uint8_t* dst, const RowShape& shape);

}  // namespace quench::exec
