// SPDX-License-Identifier: Apache-2.0
// Values far from the usual, and their error.
#include "metrics/peaks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quench::metrics {
namespace {

/// Two runs of 2,000 values each: `usual`, but for 20 that are `rare`.
std::vector<TensorMap> runs(float usual, float rare) {
  Tensor tensor = Tensor::of<float>({2000}, std::vector<float>(2000, usual));
  for (std::size_t i = 0; i < 20; ++i) tensor.mutable_data<float>()[i * 100] = rare;
  return {{{"y", tensor}}, {{"y", tensor}}};
}

TEST(Peaks, AreTheHundredthFurthestFromTheMedian) {
  const auto found = find_peaks(runs(-8, 5), "y");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->usual, -8);
  EXPECT_EQ(found->distance, 13);
}

TEST(Peaks, TheirErrorAloneCounts) {
  const auto expected = runs(-8, 5);
  Tensor actual = expected[0].at("y");
  auto values = actual.mutable_data<float>();
  values[1] = 100;  // no peak
  PeakScore score(*find_peaks(expected, "y"));
  score.add(actual, expected[0].at("y"));
  EXPECT_TRUE(std::isinf(score.value()));
  for (std::size_t i = 0; i < 20; ++i) values[i * 100] = 3.7F;  // by a tenth of the distance
  score.add(actual, expected[1].at("y"));
  EXPECT_NEAR(score.value(), 20 + 10 * std::log10(2), 1e-3) << "over both runs";
}

TEST(Peaks, FewOrEqualValuesHaveNone) {
  EXPECT_FALSE(find_peaks(runs(1, 1), "y"));
  std::vector<TensorMap> few = {{{"y", Tensor::of<float>({4}, {1, 2, 3, 400})}}};
  EXPECT_FALSE(find_peaks(few, "y"));
}

}  // namespace
}  // namespace quench::metrics
