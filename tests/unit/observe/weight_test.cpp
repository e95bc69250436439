// SPDX-License-Identifier: Apache-2.0
// Ranges of weights.
#include <gtest/gtest.h>

#include <algorithm>

#include "quench/error.h"
#include "samples.h"

namespace quench {
namespace {

using testing::made_up;
using testing::Values;

double error_of(const Tensor& weight, const QuantSpec& spec, const std::vector<Range>& ranges) {
  const Tensor fake = fake_quantize(weight, choose_params(spec, ranges));
  double sum = 0;
  for (std::size_t i = 0; i < fake.data<float>().size(); ++i) {
    const double error =
        static_cast<double>(weight.data<float>()[i]) - static_cast<double>(fake.data<float>()[i]);
    sum += error * error;
  }
  return sum;
}

TEST(WeightRanges, TakeTheLargestMagnitudeOfEachChannel) {
  const Tensor weight = Tensor::of<float>({2, 3}, {1, -2, 3, -4, 5, 0});
  EXPECT_EQ(weight_ranges(weight, {.observer = "abs_max"}), (std::vector<Range>{{-5, 5}}));
  EXPECT_EQ(weight_ranges(weight, {.axis = 0, .observer = "channel_wise_abs_max"}),
            (std::vector<Range>{{-3, 3}, {-5, 5}}));
  EXPECT_EQ(weight_ranges(weight, {.axis = 1, .observer = "channel_wise_abs_max"}),
            (std::vector<Range>{{-4, 4}, {-5, 5}, {-3, 3}}));
  EXPECT_EQ(weight_ranges(weight, {.symmetric = false, .axis = 1, .observer = "abs_max"}),
            (std::vector<Range>{{-4, 1}, {-2, 5}, {0, 3}}));
}

TEST(WeightRanges, ByObserversOfActivations) {
  // The mean of the rows' largest magnitudes, as PaddleSlim has it.
  const Tensor weight = Tensor::of<float>({2, 3}, {1, -2, 3, -4, 5, 0});
  EXPECT_EQ(weight_ranges(weight, {.observer = "avg"}), (std::vector<Range>{{-4, 4}}));
  // Tails are clipped, in each channel by itself.
  Values values(20000, 0.1F);
  values[3] = 1;
  values[10003] = -2;
  const Tensor tails = Tensor::of<float>({2, 10000}, std::span<const float>(values));
  for (const Range& range :
       weight_ranges(tails, {.axis = 0, .observer = "hist", .hist_percent = 0.99})) {
    EXPECT_LT(range.max, 0.2);
    EXPECT_EQ(range.min, -range.max);
  }
  Statistic seen;
  seen.add_sample(values);
  EXPECT_EQ(weight_ranges(tails, {.observer = "KL"})[0], find_observer("KL").range(seen, {}));
}

TEST(WeightRanges, MseBeatsEveryShrinkFactor) {
  const Values values = made_up(21, 4 * 500, 2);
  const Tensor weight = Tensor::of<float>({500, 4}, std::span<const float>(values));
  for (const int bits : {3, 4, 8}) {
    const QuantSpec spec{.bits = bits, .axis = 1, .observer = "channel_wise_mse"};
    const auto whole = weight_ranges(weight, {.axis = 1, .observer = "abs_max"});
    const double found = error_of(weight, spec, weight_ranges(weight, spec));
    for (int percent = 100; percent >= 30; percent -= 2) {
      auto ranges = whole;
      for (Range& range : ranges) {
        range = {range.min * percent / 100.0, range.max * percent / 100.0};
      }
      EXPECT_LE(found, error_of(weight, spec, ranges) * (1 + 1e-9)) << bits << ' ' << percent;
    }
  }
}

TEST(WeightRanges, SurviveZerosAndSpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor weight = Tensor::of<float>({3, 2}, {0, 0, nan, 1, 2, -1});
  for (const char* observer : {"abs_max", "mse"}) {
    const auto ranges = weight_ranges(weight, {.axis = 0, .observer = observer});
    EXPECT_EQ(ranges[0], (Range{0, 0}));
    EXPECT_EQ(ranges[1], (Range{-1, 1}));
  }
  EXPECT_EQ(weight_ranges(Tensor::zeros(DType::Float32, {0, 2}), {.axis = 1}).size(), 2u);
}

TEST(WeightRanges, RefuseWhatDoesNotFit) {
  const Tensor weight = Tensor::of<float>({2}, {1, 2});
  EXPECT_THROW(weight_ranges(weight, {.axis = 1, .observer = "abs_max"}), Error);
  EXPECT_THROW(weight_ranges(weight, {.observer = "KLL"}), Error);
}

}  // namespace
}  // namespace quench
