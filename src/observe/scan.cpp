// SPDX-License-Identifier: Apache-2.0
// The hot loops of calibration, written so that compilers vectorise them.
#include "observe/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/clones.h"

namespace quench::observe {
namespace {

constexpr int kWidth = 16;
constexpr std::int64_t kBlock = 1024;

}  // namespace

// Sums are kept in a fixed number of lanes, so that every instruction set adds in the same order.
// A float's square is exact in double: fused or not, the result is the same.
QUENCH_CLONES Summary summarize(const float* __restrict src, std::int64_t count) {
  float low[kWidth];
  float high[kWidth];
  double sum[kWidth] = {};
  double squares[kWidth] = {};
  std::int32_t zeros[kWidth] = {};
  std::fill_n(low, kWidth, std::numeric_limits<float>::infinity());
  std::fill_n(high, kWidth, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    for (int lane = 0; lane < kWidth; ++lane) {
      const float value = src[i + lane];
      const double wide = static_cast<double>(value);
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      sum[lane] += wide;
      squares[lane] += wide * wide;
      zeros[lane] += value == 0.0f ? 1 : 0;
    }
  }
  Summary result{low[0], high[0], 0, 0, 0};
  for (; i < count; ++i) {
    const double wide = static_cast<double>(src[i]);
    result.min = std::min(result.min, src[i]);
    result.max = std::max(result.max, src[i]);
    result.sum += wide;
    result.sum_squares += wide * wide;
    result.zeros += src[i] == 0.0f ? 1 : 0;
  }
  for (int lane = 0; lane < kWidth; ++lane) {
    result.min = std::min(result.min, low[lane]);
    result.max = std::max(result.max, high[lane]);
    result.sum += sum[lane];
    result.sum_squares += squares[lane];
    result.zeros += zeros[lane];
  }
  return result;
}

QUENCH_CLONES void count_bins(const float* __restrict src, std::int64_t count, float inverse,
                              std::int32_t first, std::uint16_t* __restrict lanes) {
  std::int32_t index[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    for (std::int64_t i = 0; i < size; ++i) {
      // The inverse is a power of two: the product is exact, and so is the bin.
      const auto bin = static_cast<std::int32_t>(std::floor(src[begin + i] * inverse));
      index[i] = (bin - first) * static_cast<std::int32_t>(kLanes);
    }
    std::int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      ++lanes[index[i]];
      ++lanes[index[i + 1] + 1];
      ++lanes[index[i + 2] + 2];
      ++lanes[index[i + 3] + 3];
    }
    for (; i < size; ++i) ++lanes[index[i]];
  }
}

QUENCH_CLONES void gather_lanes(std::uint16_t* __restrict lanes, std::int64_t num_bins,
                                std::uint32_t* __restrict bins) {
  for (std::int64_t i = 0; i < num_bins; ++i) {
    std::uint16_t* at = lanes + i * kLanes;
    bins[i] += static_cast<std::uint32_t>(at[0]) + at[1] + at[2] + at[3];
  }
  std::fill_n(lanes, num_bins * kLanes, std::uint16_t{0});
}

}  // namespace quench::observe
