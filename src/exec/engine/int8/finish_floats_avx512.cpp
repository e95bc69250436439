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

/// erf(t / sqrt(2)) / 2 for t >= 0 in pieces of `kWide`, each a cubic of the distance from its
/// middle: 1.2e-7 off at most. A look-up costs a third of what polynomials for all t do.
struct HalfErf {
  static constexpr int kPieces = 32;
  static constexpr int kPowers = 4;
  static constexpr float kWide = 0.171875F;
  static constexpr float kEnd = kWide * (kPieces - 1);
  alignas(64) float factors[kPowers][kPieces] = {};

  HalfErf() {
    for (int piece = 0; piece + 1 < kPieces; ++piece) fit(piece);
    factors[0][kPieces - 1] = 0.5F;  // the rest is one half in float
  }

 private:
  /// Through four points (those of Chebyshev), by divided differences.
  void fit(int piece) {
    const double middle = kWide * static_cast<double>(piece);
    double at[kPowers];
    double slopes[kPowers];
    for (int i = 0; i < kPowers; ++i) {
      at[i] = kWide / 2 * std::cos((2 * i + 1) * std::acos(-1.0) / (2 * kPowers));
      slopes[i] = std::erf((middle + at[i]) * std::sqrt(0.5)) / 2;
    }
    for (int order = 1; order < kPowers; ++order) {
      for (int i = kPowers - 1; i >= order; --i) {
        slopes[i] = (slopes[i] - slopes[i - 1]) / (at[i] - at[i - order]);
      }
    }
    double sums[kPowers] = {};
    for (int i = kPowers - 1; i >= 0; --i) {
      for (int power = kPowers - 1; power > 0; --power) {
        sums[power] = sums[power - 1] - at[i] * sums[power];
      }
      sums[0] = slopes[i] - at[i] * sums[0];
    }
    for (int power = 0; power < kPowers; ++power) {
      factors[power][piece] = static_cast<float>(sums[power]);
    }
  }
};

const HalfErf& half_erf() {
  static const HalfErf kTable;
  return kTable;
}

struct GeluTable {
  __m512 low[HalfErf::kPowers], high[HalfErf::kPowers];
};

QUENCH_AVX512 inline GeluTable registers(const HalfErf& table) {
  GeluTable result;
#pragma GCC unroll 4
  for (int i = 0; i < HalfErf::kPowers; ++i) {
    result.low[i] = _mm512_load_ps(table.factors[i]);
    result.high[i] = _mm512_load_ps(table.factors[i] + kLanes);
  }
  return result;
}

/// x * (1 + erf(x / sqrt(2))) / 2.
QUENCH_AVX512 inline __m512 gelu(__m512 x, const GeluTable& table) {
  const __m512 magic = _mm512_set1_ps(12582912.0F);  // rounds: the piece is in the lowest bits
  const __m512 size = _mm512_abs_ps(x);
  const __m512 t = _mm512_min_ps(size, _mm512_set1_ps(HalfErf::kEnd));
  const __m512 moved = _mm512_fmadd_ps(t, _mm512_set1_ps(1 / HalfErf::kWide), magic);
  const __m512i piece = _mm512_castps_si512(moved);
  const __m512 r = _mm512_fnmadd_ps(_mm512_sub_ps(moved, magic), _mm512_set1_ps(HalfErf::kWide), t);
  __m512 y = _mm512_permutex2var_ps(table.low[3], piece, table.high[3]);
#pragma GCC unroll 3
  for (int i = 2; i >= 0; --i) {
    y = _mm512_fmadd_ps(y, r, _mm512_permutex2var_ps(table.low[i], piece, table.high[i]));
  }
  return _mm512_fmadd_ps(size, y, _mm512_mul_ps(x, _mm512_set1_ps(0.5F)));
}

QUENCH_AVX512 inline __m512 read_floats(const float* src, std::int64_t count) {
  if (count >= kLanes) return _mm512_loadu_ps(src);
  const auto there = static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  return _mm512_maskz_loadu_ps(there, src);
}

QUENCH_AVX512 inline void write_floats(float* dst, __m512 x, std::int64_t count) {
  if (count >= kLanes) return _mm512_storeu_ps(dst, x);
  _mm512_mask_storeu_ps(dst, static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U), x);
}

/// What is behind the scales: nothing, bounds and a slope, or Gelu.
enum class Curve { None, Bounds, Gelu };

QUENCH_AVX512 inline __m512 bounded(__m512 x, const Finish& finish) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  x = _mm512_mask_mul_ps(x, negative, x, _mm512_set1_ps(finish.slope));
  // The second operand wins against a NaN: that must stay.
  return _mm512_min_ps(_mm512_set1_ps(finish.most), _mm512_max_ps(_mm512_set1_ps(finish.least), x));
}

template <Curve kCurve>
QUENCH_AVX512 void to_floats(const Finish& finish, const FinishedTile& tile) {
  const GeluTable table = registers(half_erf());
  for (std::int64_t n = 0; n < tile.width; ++n) {
    const std::int64_t at = kLanes * n;
    const std::int64_t left = tile.columns - at;
    if (left <= 0) break;
    const float* scales = finish.scales.data() + tile.column + at;
    const float* shifts = finish.shifts.data() + tile.column + at;
    const std::int32_t* sums = tile.sums + at;
    auto* dst = static_cast<float*>(tile.dst) + at;
    const auto* residual = static_cast<const float*>(tile.residual);
    for (int i = 0; i < tile.rows; ++i, sums += kLanes * tile.width, dst += tile.stride) {
      __m512 x = lanes::scaled(_mm512_loadu_si512(sums), scales, shifts);
      if (tile.factors != nullptr) x = _mm512_mul_ps(x, _mm512_set1_ps(tile.factors[i]));
      if (residual != nullptr) {
        x = _mm512_add_ps(x, read_floats(residual + i * tile.stride + at, left));
      }
      if constexpr (kCurve == Curve::Bounds) x = bounded(x, finish);
      if constexpr (kCurve == Curve::Gelu) x = gelu(x, table);
      write_floats(dst, x, left);
    }
  }
}

}  // namespace

void finish_floats(const Finish& finish, const FinishedTile& tile) {
  if (finish.gelu) return to_floats<Curve::Gelu>(finish, tile);
  const bool bounds =
      finish.slope != 1 || std::isfinite(finish.least) || std::isfinite(finish.most);
  bounds ? to_floats<Curve::Bounds>(finish, tile) : to_floats<Curve::None>(finish, tile);
}

}  // namespace quench::exec
#else
namespace quench::exec {
void finish_floats(const Finish&, const FinishedTile&) {}
}  // namespace quench::exec
#endif
