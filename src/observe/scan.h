// SPDX-License-Identifier: Apache-2.0
// The two loops over a sample's values: what they come to, and how they spread over bins.
#pragma once

#include <cstdint>

namespace quench::observe {

/// What one look at a run of values gives. A NaN or infinity shows in sum_squares.
struct Summary {
  float min;
  float max;
  double sum;
  double sum_squares;
  std::int64_t zeros;
};
Summary summarize(const float* src, std::int64_t count);

/// Neighbouring values count in neighbouring lanes: many equal ones (zeros behind a ReLU) would
/// otherwise wait for each other's store.
constexpr std::int64_t kLanes = 4;
/// The most values that 16-bit counters in kLanes lanes take.
constexpr std::int64_t kMaxCounted = kLanes * 65535;

/// Bins [(first + i) * width, (first + i + 1) * width) for i below count.
struct Bins {
  float width;
  std::int32_t first;
  std::int32_t count;
};
/// Adds one in the next lane of each value's bin: lanes[bin * kLanes + lane].
void count_bins(const float* src, std::int64_t count, const Bins& bins, std::uint16_t* lanes);
/// Adds one in each value's bin: best for few values.
void count_directly(const float* src, std::int64_t count, const Bins& bins, std::int64_t* counts);
/// Adds the lanes of each bin to `bins` and clears them.
void gather_lanes(std::uint16_t* lanes, std::int64_t num_bins, std::uint32_t* bins);

}  // namespace quench::observe
