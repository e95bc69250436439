// SPDX-License-Identifier: Apache-2.0
// Quartiles without sorting are those of sorting.
#include "report/tensor_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace quench::report {
namespace {

std::vector<float> drawn(std::size_t size, int kind) {
  std::mt19937 generator(static_cast<unsigned>(size));
  std::normal_distribution<float> normal(0.5F, 2.0F);
  std::vector<float> values(size);
  for (float& value : values) {
    value = normal(generator);
    if (kind == 1) value = std::max(value, 0.0F);        // half of them are 0
    if (kind == 2) value = std::floor(value * 4) / 4;    // few different ones
    if (kind == 3) value *= value > 0 ? 1e20F : 1e-20F;  // of very unlike sizes
  }
  return values;
}

TEST(TensorSummary, IsThatOfSortedValues) {
  for (const std::size_t size : {1UL, 2UL, 7UL, 4095UL, 4096UL, 100001UL}) {
    for (int kind = 0; kind < 4; ++kind) {
      const std::vector<float> values = drawn(size, kind);
      std::vector<float> sorted = values;
      std::ranges::sort(sorted);
      const auto at = [&](double share) {
        const auto place = static_cast<std::size_t>(share * static_cast<double>(size));
        return static_cast<double>(sorted[std::min(place, size - 1)]);
      };
      const TensorSummary summary = summary_of(values);
      EXPECT_EQ(summary.min, static_cast<double>(sorted.front()));
      EXPECT_EQ(summary.q1, at(0.25));
      EXPECT_EQ(summary.median, at(0.5));
      EXPECT_EQ(summary.q3, at(0.75));
      EXPECT_EQ(summary.max, static_cast<double>(sorted.back()));
    }
  }
}

TEST(TensorSummary, MomentsAndZeros) {
  const TensorSummary summary = summary_of(std::vector<float>{0, 1, 2, 5});
  EXPECT_DOUBLE_EQ(summary.mean, 2);
  EXPECT_DOUBLE_EQ(summary.variance, 3.5);
  EXPECT_DOUBLE_EQ(summary.zeros, 0.25);
}

TEST(TensorSummary, DistanceCountsWhatIsClipped) {
  const std::vector<float> real = {-3, 0, 1, 4};
  const std::vector<float> quantized = {-2, 0, 1, 2};
  const TensorDistance distance = distance_of(real, quantized, summary_of(quantized));
  EXPECT_DOUBLE_EQ(distance.clipped, 0.5);
  EXPECT_NEAR(distance.cosine, 15 / std::sqrt(26.0 * 9), 1e-12);
  const std::vector<float> none = {0, 0};
  EXPECT_DOUBLE_EQ(distance_of(none, none, summary_of(none)).cosine, 1);
}

}  // namespace
}  // namespace quench::report
