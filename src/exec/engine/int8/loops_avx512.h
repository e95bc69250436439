// SPDX-License-Identifier: Apache-2.0
// The hot loops over bytes for AVX-512; see loops.h for what they do.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace quench::exec {

struct ByteLoad;
struct ByteStore;
struct ByteSum;
struct RowShape;

namespace avx512 {

#if defined(QUENCH_X86)
// Those of Isa::Avx512; `look_up` and `look_up_rows` of Isa::Vbmi.
void add(const std::uint8_t* a, const std::uint8_t* b, const ByteSum& sum, const ByteStore& to,
         std::uint8_t* dst, std::int64_t size);
void mul(const std::uint8_t* a, const ByteLoad& load_a, const std::uint8_t* b,
         const ByteLoad& load_b, const ByteStore& to, std::uint8_t* dst, std::int64_t size);
void quantize(const float* src, float scale, const ByteStore& to, std::uint8_t* dst,
              std::int64_t size);
/// Three planes into interleaved bytes; returns how many of the pixels are done.
std::int64_t quantize_rgb(const float* src, std::int64_t stride, float scale, const ByteStore& to,
                          std::uint8_t* dst, std::int64_t size);
void look_up(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
             std::int64_t size);
/// Rows of at least 64 bytes.
void look_up_rows(const std::uint8_t* table, const std::uint8_t* src, std::uint8_t* dst,
                  const RowShape& shape, std::int64_t stride);
void mul_rows(const std::uint8_t* a, const ByteLoad& load, const float* factors,
              const ByteStore& to, std::uint8_t* dst, const RowShape& shape);
/// Adds the bytes of each column to its sum.
void sum_rows(const std::uint8_t* src, std::uint8_t flip, const RowShape& shape,
              std::int32_t* sums);
#else
inline void add(const std::uint8_t*, const std::uint8_t*, const ByteSum&, const ByteStore&,
                std::uint8_t*, std::int64_t) {}
inline void mul(const std::uint8_t*, const ByteLoad&, const std::uint8_t*, const ByteLoad&,
                const ByteStore&, std::uint8_t*, std::int64_t) {}
inline void quantize(const float*, float, const ByteStore&, std::uint8_t*, std::int64_t) {}
inline std::int64_t quantize_rgb(const float*, std::int64_t, float, const ByteStore&, std::uint8_t*,
                                 std::int64_t) {
  return 0;
}
inline void look_up(const std::uint8_t*, const std::uint8_t*, std::uint8_t*, std::int64_t) {}
inline void look_up_rows(const std::uint8_t*, const std::uint8_t*, std::uint8_t*, const RowShape&,
                         std::int64_t) {}
inline void mul_rows(const std::uint8_t*, const ByteLoad&, const float*, const ByteStore&,
                     std::uint8_t*, const RowShape&) {}
inline void sum_rows(const std::uint8_t*, std::uint8_t, const RowShape&, std::int32_t*) {}
#endif

}  // namespace avx512
}  // namespace quench::exec
