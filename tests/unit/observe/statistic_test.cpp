// SPDX-License-Identifier: Apache-2.0
// What a statistic remembers, and that order and cutting do not show in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

#include "samples.h"

namespace quench {
namespace {

using testing::made_up;
using testing::statistic_of;
using testing::Values;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Values> mixed_samples() {
  std::vector<Values> samples;
  for (unsigned i = 0; i < 12; ++i) {
    samples.push_back(made_up(i, 1000 + 37 * i, static_cast<int>(i % 4)));
    const float factor = std::ldexp(1.3f, static_cast<int>(i * 7 % 12) - 6);
    for (float& value : samples.back()) value *= factor;
  }
  samples[5][3] = 1e6f;
  samples[7] = Values(100, 0.0f);
  samples[8] = {1e-41f, -1e-41f};
  samples[9][0] = kNan;
  samples[10].clear();
  return samples;
}

TEST(Statistic, CountsEveryValueInItsBin) {
  const Values values = made_up(1, 20000, 2);
  const Statistic statistic = statistic_of({values});
  ASSERT_FALSE(statistic.bins.empty());
  EXPECT_LE(static_cast<std::int64_t>(statistic.bins.size()), Statistic::kMaxBins);
  std::vector<std::int64_t> expected(statistic.bins.size());
  double sum = 0;
  for (const float value : values) {
    const double bin = std::floor(static_cast<double>(value) / statistic.bin_width);
    ++expected.at(static_cast<std::size_t>(static_cast<std::int64_t>(bin) - statistic.first_bin));
    sum += static_cast<double>(value);
  }
  EXPECT_EQ(statistic.bins, expected);
  EXPECT_EQ(statistic.count, 20000);
  EXPECT_EQ(static_cast<float>(statistic.min), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(static_cast<float>(statistic.max), *std::max_element(values.begin(), values.end()));
  EXPECT_NEAR(statistic.sum, sum, 1e-6);
}

TEST(Statistic, MergesBitForBit) {
  const auto samples = mixed_samples();
  const Statistic whole = statistic_of(samples);
  for (std::size_t cut = 0; cut <= samples.size(); ++cut) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(cut);
    Statistic joined = statistic_of({samples.begin(), middle});
    joined.merge(statistic_of({middle, samples.end()}, static_cast<std::int64_t>(cut)));
    EXPECT_EQ(joined, whole) << "cut at " << cut;
  }
}

TEST(Statistic, MergeCommutes) {
  const auto samples = mixed_samples();
  const Statistic whole = statistic_of(samples);
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(7);
  for (int round = 0; round < 5; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    Statistic joined;
    for (const std::size_t i : order) {
      Statistic one = statistic_of({samples[i]}, static_cast<std::int64_t>(i));
      one.merge(joined);
      joined = one;
    }
    EXPECT_EQ(joined, whole);
  }
}

TEST(Statistic, ThreadsDoNotShow) {
  const Values values = made_up(3, 500000, 2);
  const Statistic alone = statistic_of({values});
  for (const std::int64_t parts : {2, 3, 7}) {
    Statistic shared;
    shared.add_sample(values, [&](std::int64_t count, const auto& body) {
      std::vector<std::jthread> threads;
      for (std::int64_t i = 0; i < parts; ++i) {
        threads.emplace_back(
            [&body, count, parts, i] { body(count * i / parts, count * (i + 1) / parts); });
      }
    });
    EXPECT_EQ(shared, alone);
  }
}

TEST(Statistic, CountsWhatIsNotFinite) {
  const Statistic statistic =
      statistic_of({{1.0f, kNan, -kInf, 2.0f, kInf}, {kNan, kNan}, {}, {-1.0f}});
  EXPECT_EQ(statistic.samples, 4);
  EXPECT_EQ(statistic.observed, 2);
  EXPECT_EQ(statistic.count, 3);
  EXPECT_EQ(statistic.nans, 3);
  EXPECT_EQ(statistic.infinities, 2);
  EXPECT_EQ(statistic.min, -1);
  EXPECT_EQ(statistic.max, 2);
  EXPECT_EQ(statistic.sum, 2.0);
  EXPECT_EQ(statistic.sum_abs_max, 3.0);
}

TEST(Statistic, HandlesExtremes) {
  const float largest = std::numeric_limits<float>::max();
  const Statistic statistic = statistic_of({{1e-45f, -1e-45f, 0.0f, -0.0f}, {largest, -largest}});
  EXPECT_EQ(statistic.count, 6);
  EXPECT_EQ(statistic.zeros, 2);
  EXPECT_EQ(std::accumulate(statistic.bins.begin(), statistic.bins.end(), std::int64_t{0}), 6);
  EXPECT_EQ(statistic.sum, 0.0);
}

TEST(Statistic, FindsQuantilesOfASample) {
  Values values = made_up(4, 50000);
  Statistic statistic;
  statistic.add_sample(values);
  std::sort(values.begin(), values.end());
  const double width = statistic.bin_width;
  EXPECT_NEAR(statistic.sum_low, static_cast<double>(values[5]), width);
  EXPECT_NEAR(statistic.sum_high, static_cast<double>(values[49995]), width);
  const Statistic small = statistic_of({{3.0f, 1.0f, 2.0f}});
  EXPECT_EQ(small.sum_low, 1.0);
  EXPECT_EQ(small.sum_high, 3.0);
}

TEST(ExactSum, DoesNotRound) {
  ExactSum sum;
  for (const double value : {1e30, 1.0, -1e30, 1e-30, -1.0}) sum.add(value);
  EXPECT_EQ(sum, 1e-30);
  sum.add(-1e-30);
  EXPECT_EQ(sum, ExactSum());
  sum.add(-3.25);
  EXPECT_EQ(sum.value(), -3.25);
}

TEST(MovingAverage, IsTheRecurrence) {
  MovingAverage average;
  double state = 0;
  double accumulated = 0;
  for (int i = 0; i < 1000; ++i) {
    const float value = 1.0f + static_cast<float>(i % 17);
    average.add({i, value});
    state = 0.9 * state + 1;
    accumulated = 0.9 * accumulated + static_cast<double>(value);
  }
  EXPECT_NEAR(average, accumulated / state, 1e-12);
}

}  // namespace
}  // namespace quench
