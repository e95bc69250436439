// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats, written so that compilers make vectors of them.
#include "exec/engine/kernels/rows.h"

#include <bit>
#include <cmath>

#include "base/cpu.h"
#include "exec/engine/kernels/erf.h"

namespace quench::exec {
namespace {

/// Sums and maxima are kept in so many places, which fill vectors.
constexpr std::int64_t kLanes = 32;

inline float larger(float a, float b) { return a > b ? a : b; }

inline float erf_of(float given) {
  const float bounded = given < -erf::kEnd ? -erf::kEnd : given;
  const float x = bounded > erf::kEnd ? erf::kEnd : bounded;
  const float t = x * x;
  float p = 0;
  for (const float factor : erf::kP) p = p * t + factor;
  float q = 0;
  for (const float factor : erf::kQ) q = q * t + factor;
  return x * p / q;
}

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

QUENCH_MULTIVERSION(void, mask_row,
                    (const float* src, float scale, const float* mask, float* dst,
                     std::int64_t columns),
                    (src, scale, mask, dst, columns)) {
  if (mask == nullptr) {
    for (std::int64_t i = 0; i < columns; ++i) dst[i] = src[i] * scale;
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) dst[i] = src[i] * scale + mask[i];
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

/// Exponentials of the distance to the largest, in place; returns their sum.
QUENCH_MULTIVERSION(float, exponentials, (float* data, float most, std::int64_t columns),
                    (data, most, columns)) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float y = exp_of(data[i + lane] - most);
      data[i + lane] = y;
      lanes[lane] += y;
    }
  }
  float sum = sum_of(lanes);
  for (; i < columns; ++i) {
    data[i] = exp_of(data[i] - most);
    sum += data[i];
  }
  return sum;
}

QUENCH_MULTIVERSION(void, multiply, (float* data, float by, std::int64_t columns),
                    (data, by, columns)) {
  for (std::int64_t i = 0; i < columns; ++i) data[i] *= by;
}

QUENCH_MULTIVERSION(float, sum_row, (const float* src, std::int64_t columns), (src, columns)) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += src[i + lane];
  }
  float sum = sum_of(lanes);
  for (; i < columns; ++i) sum += src[i];
  return sum;
}

QUENCH_MULTIVERSION(float, sum_squares, (const float* src, float mean, std::int64_t columns),
                    (src, mean, columns)) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float x = src[i + lane] - mean;
      lanes[lane] += x * x;
    }
  }
  float sum = sum_of(lanes);
  for (; i < columns; ++i) sum += (src[i] - mean) * (src[i] - mean);
  return sum;
}

QUENCH_MULTIVERSION(void, normalize,
                    (const float* src, const RowNorm& norm, float mean, float by, float* dst,
                     std::int64_t columns),
                    (src, norm, mean, by, dst, columns)) {
  const float* scale = norm.scale;
  const float* bias = norm.bias;
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < columns; ++i) dst[i] = (src[i] - mean) * by * scale[i];
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) dst[i] = (src[i] - mean) * by * scale[i] + bias[i];
}

QUENCH_MULTIVERSION(float, sum_sizes, (const float* src, std::int64_t columns), (src, columns)) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += std::abs(src[i + lane]);
  }
  float sum = sum_of(lanes);
  for (; i < columns; ++i) sum += std::abs(src[i]);
  return sum;
}

QUENCH_MULTIVERSION(void, divide, (const float* src, float by, float* dst, std::int64_t columns),
                    (src, by, dst, columns)) {
  for (std::int64_t i = 0; i < columns; ++i) dst[i] = src[i] / by;
}

}  // namespace

QUENCH_MULTIVERSION(void, gelu_loop, (float* data, std::int64_t size), (data, size)) {
  constexpr float kHalfRoot = 0.70710678F;
  for (std::int64_t i = 0; i < size; ++i) {
    const float x = data[i];
    data[i] = 0.5F * x * (1.0F + erf_of(x * kHalfRoot));
  }
}

void softmax_loop(const float* src, float scale, const float* mask, float* dst,
                  std::int64_t columns) {
  mask_row(src, scale, mask, dst, columns);
  const float most = largest(dst, columns);
  // Rows of -infinity or with NaN: as the definition has it.
  if (!std::isfinite(most)) return multiply(dst, NAN, columns);
  multiply(dst, 1.0F / exponentials(dst, most, columns), columns);
}

QUENCH_MULTIVERSION(void, softmax_short_rows_loop,
                    (const float* src, float scale, float* dst, std::int64_t rows,
                     std::int64_t columns),
                    (src, scale, dst, rows, columns)) {
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
      for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i * columns + c] * scale;
      for (std::int64_t i = 0; i < kLanes; ++i) most[i] = larger(lane[i], most[i]);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i * columns + c] * scale;
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

void lp_norm_loop(const float* src, bool second, float* dst, std::int64_t columns) {
  const float length =
      second ? std::sqrt(sum_squares(src, 0.0F, columns)) : sum_sizes(src, columns);
  divide(src, length == 0.0F ? 1.0F : length, dst, columns);
}

void layer_norm_loop(const float* src, const RowNorm& norm, float* dst, std::int64_t columns) {
  const auto count = static_cast<float>(columns);
  const float mean = sum_row(src, columns) / count;
  const float variance = sum_squares(src, mean, columns) / count;
  normalize(src, norm, mean, 1.0F / std::sqrt(variance + norm.epsilon), dst, columns);
}

}  // namespace quench::exec
