// SPDX-License-Identifier: Apache-2.0
// Sums over weights: float lanes within a chunk, doubles between chunks, so that compilers
// vectorise and long rows lose nothing.
#include "quant/weight_loops.h"

#include <algorithm>
#include <limits>

#include "quant/clones.h"

namespace quench::quant {
namespace {

constexpr int kLanes = 16;
constexpr std::int64_t kChunk = 1024;

struct LaneSums {
  float values[kLanes] = {};
  float errors[kLanes] = {};
  float cross[kLanes] = {};
  float integers[kLanes] = {};
  float drift[kLanes] = {};
};

inline __attribute__((always_inline)) void add(LaneSums& sums, int lane, float value, float step,
                                               float scale) {
  const float error = value - scale * step;
  sums.values[lane] += value * value;
  sums.errors[lane] += error * error;
  sums.cross[lane] += value * step;
  sums.integers[lane] += step * step;
  sums.drift[lane] += error;
}

double total(const float (&lanes)[kLanes]) {
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

template <typename Integer>
inline __attribute__((always_inline)) Moments moments_loop(const float* __restrict src,
                                                           const Integer* __restrict integers,
                                                           std::int64_t count, float scale,
                                                           float zero) {
  Moments result;
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    const std::int64_t end = std::min(count, begin + kChunk);
    LaneSums sums;
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        add(sums, lane, src[i + lane], static_cast<float>(integers[i + lane]) - zero, scale);
      }
    }
    for (; i < end; ++i) add(sums, 0, src[i], static_cast<float>(integers[i]) - zero, scale);
    result.values += total(sums.values);
    result.errors += total(sums.errors);
    result.cross += total(sums.cross);
    result.integers += total(sums.integers);
    result.drift += total(sums.drift);
  }
  return result;
}

}  // namespace

QUENCH_CLONES Extent extent_of(const float* __restrict src, std::int64_t count) {
  float low[kLanes] = {};
  float high[kLanes] = {};
  // NaN and infinity are the numbers that do not cancel themselves.
  float wrong[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
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
  for (int lane = 0; lane < kLanes; ++lane) {
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

#define QUENCH_MOMENTS(Integer)                                                                   \
  template <>                                                                                     \
  QUENCH_CLONES Moments moments_of(const float* src, const Integer* integers, std::int64_t count, \
                                   float scale, int zero) {                                       \
    return moments_loop(src, integers, count, scale, static_cast<float>(zero));                   \
  }
QUENCH_MOMENTS(std::int8_t)
QUENCH_MOMENTS(std::int16_t)
#undef QUENCH_MOMENTS

}  // namespace quench::quant
