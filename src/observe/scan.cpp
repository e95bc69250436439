// SPDX-License-Identifier: Apache-2.0
// The hot loops of calibration, written so that compilers vectorise them.
#include "observe/scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/cpu.h"
#include "quant/bin_range.h"
#include "quant/lanes.h"

namespace quench::observe {
namespace {

using quant::kNumLanes;
using quant::Lanes;

constexpr std::int64_t kBlock = 1024;

inline std::int32_t bin_of(float value, float inverse, const Bins& bins) {
  return quant::bin_of(value, inverse, bins.width, bins.first, bins.count);
}

}  // namespace

// Sums are kept in a fixed number of lanes, so that every instruction set adds in the same order.
// A float's square is exact in double: fused or not, the result is the same.
QUENCH_MULTIVERSION(Summary, summarize, (const float* __restrict src, std::int64_t count),
                    (src, count)) {
  Lanes<float> low(std::numeric_limits<float>::infinity());
  Lanes<float> high(-std::numeric_limits<float>::infinity());
  Lanes<double> sum;
  Lanes<double> squares;
  Lanes<std::int32_t> zeros;
  std::int64_t i = 0;
  for (; i + kNumLanes <= count; i += kNumLanes) {
    for (int lane = 0; lane < kNumLanes; ++lane) {
      const float value = src[i + lane];
      const auto wide = static_cast<double>(value);
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      sum[lane] += wide;
      squares[lane] += wide * wide;
      zeros[lane] += value == 0.0F ? 1 : 0;
    }
  }
  Summary result{low[0], high[0], 0, 0, 0};
  for (; i < count; ++i) {
    const auto wide = static_cast<double>(src[i]);
    result.min = std::min(result.min, src[i]);
    result.max = std::max(result.max, src[i]);
    result.sum += wide;
    result.sum_squares += wide * wide;
    result.zeros += src[i] == 0.0F ? 1 : 0;
  }
  for (int lane = 0; lane < kNumLanes; ++lane) {
    result.min = std::min(result.min, low[lane]);
    result.max = std::max(result.max, high[lane]);
    result.sum += sum[lane];
    result.sum_squares += squares[lane];
    result.zeros += zeros[lane];
  }
  return result;
}

QUENCH_MULTIVERSION(void, count_bins,
                    (const float* __restrict src, std::int64_t count, const Bins& bins,
                     std::uint16_t* __restrict lanes),
                    (src, count, bins, lanes)) {
  const Bins own = bins;
  std::array<std::uint32_t, kBlock> index;
  const float inverse = 1.0F / own.width;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const auto size = static_cast<std::size_t>(std::min(kBlock, count - begin));
    for (std::size_t i = 0; i < size; ++i) {
      const std::int32_t bin = bin_of(src[begin + static_cast<std::int64_t>(i)], inverse, own);
      index[i] = static_cast<std::uint32_t>(bin) * static_cast<std::uint32_t>(kLanes);
    }
    std::size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      ++lanes[index[i]];
      ++lanes[index[i + 1] + 1];
      ++lanes[index[i + 2] + 2];
      ++lanes[index[i + 3] + 3];
    }
    for (; i < size; ++i) ++lanes[index[i]];
  }
}

void count_directly(const float* src, std::int64_t count, const Bins& bins, std::int64_t* counts) {
  const float inverse = 1.0F / bins.width;
  for (std::int64_t i = 0; i < count; ++i) ++counts[bin_of(src[i], inverse, bins)];
}

// The four counters of a bin are added inside one 64-bit word.
QUENCH_MULTIVERSION(void, gather_lanes,
                    (std::uint16_t* __restrict lanes, std::int64_t num_bins,
                     std::uint32_t* __restrict bins),
                    (lanes, num_bins, bins)) {
  constexpr std::uint64_t kEven = 0x0000ffff0000ffff;
  static_assert(kLanes * sizeof(std::uint16_t) == sizeof(std::uint64_t));
  for (std::int64_t i = 0; i < num_bins; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, lanes + i * kLanes, sizeof(word));
    const std::uint64_t pairs = (word & kEven) + ((word >> 16) & kEven);
    bins[i] += static_cast<std::uint32_t>(pairs) + static_cast<std::uint32_t>(pairs >> 32);
  }
  std::fill_n(lanes, num_bins * kLanes, std::uint16_t{0});
}

}  // namespace quench::observe
