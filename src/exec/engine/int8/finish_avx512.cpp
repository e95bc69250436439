// SPDX-License-Identifier: Apache-2.0
// Scales, adds, rounds and stores the sums of a tile as bytes with AVX-512.
#include "base/cpu.h"
#include "exec/engine/int8/finish.h"

#if defined(QUENCH_X86)
#include "exec/engine/int8/finish_lanes.h"

namespace quench::exec {
namespace {

using lanes::kLanes;
using lanes::kMaxWidth;

QUENCH_AVX512 inline __m512 sloped(__m512 x, __m512 slope) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(x, negative, x, slope);
}

struct Residual {
  __m512 scale, shift;
  __m128i flip;
};

QUENCH_AVX512 inline Residual registers(const AddedBytes& bytes) {
  return {_mm512_set1_ps(bytes.scale), _mm512_set1_ps(bytes.shift), _mm_set1_epi32(bytes.flip)};
}

QUENCH_AVX512 inline __m512 read_bytes(const std::uint8_t* bytes, __m128i flip) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_xor_si128(packed, flip)));
}

QUENCH_AVX512 inline __m512 added(__m512 x, const std::uint8_t* bytes, const Residual& by) {
  return _mm512_fmadd_ps(_mm512_sub_ps(read_bytes(bytes, by.flip), by.shift), by.scale, x);
}

/// The parameters between two roundings. Numbers are clamped to their bounds before they are
/// rounded, which is the same as after it, because bounds are whole.
struct Middle {
  __m512 low, high, zero, scale_a, scale_b, shift;
  bool residual_first;
};

QUENCH_AVX512 inline Middle registers(const MiddleParams& params) {
  return {_mm512_set1_ps(params.low),
          _mm512_set1_ps(params.high),
          _mm512_set1_ps(params.zero),
          _mm512_set1_ps(params.sum.scale_a),
          _mm512_set1_ps(params.sum.scale_b),
          _mm512_set1_ps(params.sum.shift),
          params.residual_first};
}

QUENCH_AVX512 inline __m512 rounded(__m512 x, const Middle& to) {
  const __m512 kept = _mm512_min_ps(_mm512_max_ps(x, to.low), to.high);
  return _mm512_add_ps(_mm512_roundscale_ps(kept, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                       to.zero);
}

/// The sum of flipped bytes, as `add_loop` makes it.
QUENCH_AVX512 inline __m512 summed(__m512 layer, __m512 residual, const Middle& by) {
  const __m512 a = by.residual_first ? residual : layer;
  const __m512 b = by.residual_first ? layer : residual;
  return _mm512_fmadd_ps(a, by.scale_a, _mm512_fmadd_ps(b, by.scale_b, by.shift));
}

template <int kWidth, AddBytes kAdd>
QUENCH_AVX512 void to_bytes(const Finish& finish, const FinishedTile& tile) {
  const lanes::Out out = lanes::registers(finish.out);
  const Residual residual = registers(finish.residual);
  const Middle middle = registers(finish.middle);
  const __m512 slope = _mm512_set1_ps(finish.slope);
  const bool slopes = finish.slope != 1;
  const float* scales = finish.scales.data() + tile.column;
  const float* shifts = finish.shifts.data() + tile.column;
  const auto* other = static_cast<const std::uint8_t*>(tile.residual);
  auto* dst = static_cast<std::uint8_t*>(tile.dst);
  const bool partial = tile.columns < kLanes * kWidth;
  alignas(64) std::uint8_t block[kMaxWidth * kLanes] = {};
  for (int i = 0; i < tile.rows; ++i) {
    const std::uint8_t* beside = other;
    if (kAdd != AddBytes::None && partial) {
      std::memcpy(block, other, static_cast<std::size_t>(tile.columns));
      beside = block;
    }
    __m512i whole[kMaxWidth] = {};
#pragma GCC unroll 4
    for (int n = 0; n < kWidth; ++n) {
      const __m512i sums = _mm512_loadu_si512(tile.sums + kLanes * (i * kWidth + n));
      __m512 x = lanes::scaled(sums, scales + kLanes * n, shifts + kLanes * n);
      if constexpr (kAdd == AddBytes::Once) x = added(x, beside + kLanes * n, residual);
      if (slopes) x = sloped(x, slope);
      if constexpr (kAdd == AddBytes::Twice) {
        x = summed(rounded(x, middle), read_bytes(beside + kLanes * n, residual.flip), middle);
      }
      whole[n] = _mm512_cvtps_epi32(x);
    }
    lanes::write<kWidth>(dst + i * tile.stride, lanes::packed(whole, out), tile.columns);
    if constexpr (kAdd != AddBytes::None) other += tile.stride;
  }
}

template <AddBytes kAdd>
void to_bytes(const Finish& finish, const FinishedTile& tile) {
  switch (tile.width) {
    case 1:
      return to_bytes<1, kAdd>(finish, tile);
    case 2:
      return to_bytes<2, kAdd>(finish, tile);
    case 3:
      return to_bytes<3, kAdd>(finish, tile);
    default:
      return to_bytes<4, kAdd>(finish, tile);
  }
}

}  // namespace

void finish_tile(const Finish& finish, const FinishedTile& tile) {
  if (finish.floats) return finish_floats(finish, tile);
  switch (finish.add) {
    case AddBytes::None:
      return to_bytes<AddBytes::None>(finish, tile);
    case AddBytes::Once:
      return to_bytes<AddBytes::Once>(finish, tile);
    case AddBytes::Twice:
      return to_bytes<AddBytes::Twice>(finish, tile);
  }
}

}  // namespace quench::exec
#else
namespace quench::exec {
void finish_tile(const Finish&, const FinishedTile&) {}
}  // namespace quench::exec
#endif
