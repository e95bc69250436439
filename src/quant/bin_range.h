// SPDX-License-Identifier: Apache-2.0
// Histograms whose width follows from their range alone. GPU kernels read this file too.
#pragma once

#include <cmath>
#include <cstdint>

namespace quench::quant {

/// The most bins of a histogram.
inline constexpr std::int64_t kMaxBins = 4096;
/// Elements of a sample that are summed on their own, so that sums do not depend on the number of
/// threads.
inline constexpr std::int64_t kPiece = 16384;
/// The quantiles of so few values are taken for their extremes.
inline constexpr std::int64_t kFewValues = 4096;

/// The bins that a range takes: [(first + i) * width, (first + i + 1) * width) for i below count.
struct BinRange {
  double width;
  std::int64_t first;
  std::int64_t count;
};

/// The smallest power of two with which [min, max] and zero fit into kMaxBins bins.
inline double canonical_width(double min, double max) {
  // Its inverse must be a float32; what is smaller than that lies in the bins beside zero.
  constexpr int kLeastExponent = -120;
  const double low = min < 0.0 ? min : 0.0;
  const double high = max > 0.0 ? max : 0.0;
  const double least = std::ldexp(1.0, kLeastExponent);
  const auto most = static_cast<double>(kMaxBins);
  const double wanted = (high - low) / most;
  // 2^ilogb is at most `wanted`, and half of it could never hold the range.
  double width = wanted > least ? std::ldexp(1.0, std::ilogb(wanted)) : least;
  while (std::floor(high / width) - std::floor(low / width) + 1 > most) width *= 2;
  return width;
}

inline BinRange bin_range(double min, double max) {
  const double width = canonical_width(min, max);
  const auto first = static_cast<std::int64_t>(std::floor(min / width));
  const auto last = static_cast<std::int64_t>(std::floor(max / width));
  return {width, first, last - first + 1};
}

/// The ranks of a sample's 0.01 % and 99.99 % quantiles, as MindSpore Lite takes them: no
/// interpolation.
inline std::int64_t low_rank(std::int64_t count) {
  return static_cast<std::int64_t>(0.0001 * static_cast<double>(count));
}
inline std::int64_t high_rank(std::int64_t count) {
  const auto rank = static_cast<std::int64_t>(0.9999 * static_cast<double>(count));
  return rank < count - 1 ? rank : count - 1;
}

/// floor(value / width), exactly: the width is a power of two, and the comparison is made among
/// values, where tiny ones do not vanish. Vectorises where floor() does not. Threads may differ in
/// whether they flush denormal numbers to zero, so bins are kept inside.
inline std::int32_t bin_of(float value, float inverse, float width, std::int32_t first,
                           std::int32_t count) {
  const auto cut = static_cast<std::int32_t>(value * inverse);
  const std::int32_t bin = cut - (static_cast<float>(cut) * width > value ? 1 : 0) - first;
  const std::int32_t raised = bin < 0 ? 0 : bin;
  return raised < count ? raised : count - 1;
}

}  // namespace quench::quant
