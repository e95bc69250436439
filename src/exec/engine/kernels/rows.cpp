// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats, written so that compilers make vectors of them.
#include "exec/engine/kernels/rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/cpu.h"

namespace quench::exec {
namespace {

/// Sums and maxima are kept in so many places, which fill vectors.
constexpr std::int64_t kLanes = 32;

inline float larger(float a, float b) { return a > b ? a : b; }

/// 2^n times the series of what is left; right for x <= 0 up to two units in the last place.
inline float exp_of(float given) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kMagic = 12582912.0F;             // rounds to integers
  const float x = given < -87.0F ? -87.0F : given;  // NaN stays
  const float n = (x * kLog2E + kMagic) - kMagic;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float y = 1.0F / 5040;
  y = y * r + 1.0F / 720;
  y = y * r + 1.0F / 120;
  y = y * r + 1.0F / 24;
  y = y * r + 1.0F / 6;
  y = y * r + 0.5F;
  y = y * r + 1.0F;
  y = y * r + 1.0F;
  const auto power = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return y * std::bit_cast<float>(power);
}

inline float sum_of(const float* lanes) {
  float sum = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

QUENCH_MULTIVERSION(float, largest, (const float* src, std::int64_t columns), (src, columns)) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -INFINITY;
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = larger(src[i + lane], lanes[lane]);
    }
  }
  float most = -INFINITY;
  for (const float lane : lanes) most = larger(lane, most);
  for (; i < columns; ++i) most = larger(src[i], most);
  return most;
}

/// Exponentials of the distance to the largest; returns their sum.
QUENCH_MULTIVERSION(float, exponentials,
                    (const float* src, float most, float* dst, std::int64_t columns),
                    (src, most, dst, columns)) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float y = exp_of(src[i + lane] - most);
      dst[i + lane] = y;
      lanes[lane] += y;
    }
  }
  float sum = sum_of(lanes);
  for (; i < columns; ++i) {
    dst[i] = exp_of(src[i] - most);
    sum += dst[i];
  }
  return sum;
}

QUENCH_MULTIVERSION(void, multiply, (float* data, float by, std::int64_t columns),
                    (data, by, columns)) {
  for (std::int64_t i = 0; i < columns; ++i) data[i] *= by;
}

}  // namespace

void softmax_loop(const float* src, float* dst, std::int64_t columns) {
  const float most = largest(src, columns);
  // Rows of -infinity or with NaN: as the definition has it.
  if (!std::isfinite(most)) {
    std::fill_n(dst, columns, NAN);
    return;
  }
  multiply(dst, 1.0F / exponentials(src, most, dst, columns), columns);
}

QUENCH_MULTIVERSION(void, softmax_short_rows_loop,
                    (const float* src, float* dst, std::int64_t rows, std::int64_t columns),
                    (src, dst, rows, columns)) {
  // Sixteen rows at a time, one in each lane.
  for (std::int64_t first = 0; first < rows; first += kLanes) {
    const std::int64_t count = rows - first < kLanes ? rows - first : kLanes;
    const float* from = src + first * columns;
    float* to = dst + first * columns;
    float lane[kLanes] = {};
    float most[kLanes];
    float sum[kLanes] = {};
    for (float& each : most) each = -INFINITY;
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i * columns + c];
      for (std::int64_t i = 0; i < kLanes; ++i) most[i] = larger(lane[i], most[i]);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i * columns + c];
      for (std::int64_t i = 0; i < kLanes; ++i) {
        lane[i] = exp_of(lane[i] - most[i]);
        sum[i] += lane[i];
      }
      for (std::int64_t i = 0; i < count; ++i) to[i * columns + c] = lane[i];
    }
    // Rows of -infinity or with NaN: as the definition has it.
    for (std::int64_t i = 0; i < kLanes; ++i) {
      sum[i] = most[i] - most[i] == 0.0F ? 1.0F / sum[i] : NAN;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) to[i * columns + c] *= sum[i];
    }
  }
}

}  // namespace quench::exec
