// SPDX-License-Identifier: Apache-2.0
// What one look at a sample's values gives: found where the values lie, added to a statistic here.
// GPU kernels read this file too, so it holds plain structs alone.
#pragma once

#include <cstdint>

namespace quench {

/// Where the value of a rank lies in a sample's histogram.
struct RankPlace {
  std::int64_t below = 0;   ///< values in the bins before
  std::int64_t inside = 0;  ///< values in the bin
  std::int64_t bin = 0;     ///< counted from the histogram's first
};

/// One sample of one value. Numbers that are not finite are counted and left out of the rest.
struct SampleSummary {
  float min = 0;
  float max = 0;
  double sum = 0;
  double sum_squares = 0;
  std::int64_t finite = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  std::int64_t zeros = 0;
  RankPlace low;   ///< of the 0.01 % quantile
  RankPlace high;  ///< of the 99.99 % quantile
};

}  // namespace quench
