// SPDX-License-Identifier: Apache-2.0
// The order in which samples show that a model is not good enough.
#include "analyze/risk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quench::analyze {
namespace {

TEST(Risk, MarginIsTheLeadOfTheFirst) {
  EXPECT_DOUBLE_EQ(margin(Tensor::of<float>({1, 4}, {1.0F, -2.0F, 4.0F, 3.5F})), 0.5);
  EXPECT_DOUBLE_EQ(margin(Tensor::of<float>({2}, {7.0F, 7.0F})), 0.0);
}

TEST(Risk, NothingOvertakesTheOnlyClass) {
  const double always = std::numeric_limits<double>::infinity();
  EXPECT_EQ(margin(Tensor::of<float>({1}, {7.0F})), always);
  EXPECT_EQ(margin(Tensor::of<float>({2}, {NAN, 7.0F})), always);
}

TEST(Risk, WrongSamplesComeFirstThenTheLeastSure) {
  const std::vector<evaluation::SampleScore> in_float = {
      {.metric = 100}, {.metric = 0}, {.metric = 100}, {.metric = 100}, {.metric = 0}};
  const std::vector<std::int64_t> expected = {4, 1, 3, 0, 2};
  EXPECT_EQ(riskiest_first(in_float, {0.5, 3.0, 0.9, 0.1, 2.0}), expected);
}

}  // namespace
}  // namespace quench::analyze
