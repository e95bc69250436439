// SPDX-License-Identifier: Apache-2.0
// Sums over weights: float lanes within a chunk, doubles between chunks, so that compilers
// vectorise and long rows lose nothing.
#include "quant/weight_loops.h"

#include <algorithm>
#include <limits>

#include "base/cpu.h"
#include "quant/lanes.h"

namespace quench::quant {
namespace {

constexpr std::int64_t kChunk = 1024;

struct LaneSums {
  Lanes<float> values;
  Lanes<float> errors;
  Lanes<float> cross;
  Lanes<float> integers;
  Lanes<float> drift;
};

QUENCH_INLINE void add(LaneSums& sums, int lane, float value, float step, float scale) {
  const float error = value - scale * step;
  sums.values[lane] += value * value;
  sums.errors[lane] += error * error;
  sums.cross[lane] += value * step;
  sums.integers[lane] += step * step;
  sums.drift[lane] += error;
}

template <typename Integer>
QUENCH_INLINE Moments moments_loop(const float* __restrict src, const Integer* __restrict integers,
                                   std::int64_t count, float scale, float zero) {
  Moments result;
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const std::int64_t end = std::min(count, begin + kChunk);
    LaneSums sums;
    std::int64_t i = begin;
    for (; i + kNumLanes <= end; i += kNumLanes) {
      for (int lane = 0; lane < kNumLanes; ++lane) {
        add(sums, lane, src[i + lane], static_cast<float>(integers[i + lane]) - zero, scale);
      }
    }
    for (; i < end; ++i) add(sums, 0, src[i], static_cast<float>(integers[i]) - zero, scale);
    result.values += sums.values.total();
    result.errors += sums.errors.total();
    result.cross += sums.cross.total();
    result.integers += sums.integers.total();
    result.drift += sums.drift.total();
  }
  return result;
}

}  // namespace

QUENCH_MULTIVERSION(Extent, extent_of, (const float* __restrict src, std::int64_t count),
                    (src, count)) {
  Lanes<float> low;
  Lanes<float> high;
  // NaN and infinity are the numbers that do not cancel themselves.
  Lanes<float> wrong;
  std::int64_t i = 0;
  for (; i + kNumLanes <= count; i += kNumLanes) {
    for (int lane = 0; lane < kNumLanes; ++lane) {
      const float value = src[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      wrong[lane] += value - value;
    }
  }
  for (; i < count; ++i) {
    low[0] = std::min(low[0], src[i]);
    high[0] = std::max(high[0], src[i]);
    wrong[0] += src[i] - src[i];
  }
  Extent result;
  for (int lane = 0; lane < kNumLanes; ++lane) {
    result.low = std::min(result.low, low[lane]);
    result.high = std::max(result.high, high[lane]);
    result.finite = result.finite && wrong[lane] == 0.0F;
  }
  return result;
}

double sum_of_magnitudes(const float* src, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(src[i] < 0 ? -src[i] : src[i]);
  }
  return sum;
}

#define QUENCH_MOMENTS(Integer, name)                                                            \
  QUENCH_MULTIVERSION(                                                                           \
      Moments, moments_##name,                                                                   \
      (const float* src, const Integer* integers, std::int64_t count, float scale, int zero),    \
      (src, integers, count, scale, zero)) {                                                     \
    return moments_loop(src, integers, count, scale, static_cast<float>(zero));                  \
  }                                                                                              \
  template <>                                                                                    \
  Moments moments_of(const float* src, const Integer* integers, std::int64_t count, float scale, \
                     int zero) {                                                                 \
    return moments_##name(src, integers, count, scale, zero);                                    \
  }
QUENCH_MOMENTS(std::int8_t, s8)
QUENCH_MOMENTS(std::int16_t, s16)
#undef QUENCH_MOMENTS

}  // namespace quench::quant
