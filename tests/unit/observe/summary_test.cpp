// SPDX-License-Identifier: Apache-2.0
// Samples that were looked at elsewhere (on a GPU) count as those whose values are seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "quant/bin_range.h"
#include "samples.h"

namespace quench {
namespace {

using testing::made_up;
using testing::Values;

std::vector<std::int64_t> counted(const std::vector<Values>& samples, double min, double max) {
  const quant::BinRange range = quant::bin_range(min, max);
  std::vector<std::int64_t> bins(static_cast<std::size_t>(quant::kMaxBins));
  for (const Values& values : samples) {
    for (const float value : values) {
      if (!std::isfinite(value)) continue;
      const double bin = std::floor(static_cast<double>(value) / range.width);
      ++bins.at(static_cast<std::size_t>(static_cast<std::int64_t>(bin) - range.first));
    }
  }
  return bins;
}

RankPlace place_of(const std::vector<std::int64_t>& bins, std::int64_t rank) {
  RankPlace place;
  while (place.below + bins[static_cast<std::size_t>(place.bin)] <= rank) {
    place.below += bins[static_cast<std::size_t>(place.bin++)];
  }
  place.inside = bins[static_cast<std::size_t>(place.bin)];
  return place;
}

/// As slowly and plainly as can be. Sums are exact, because the values are few and round.
SampleSummary summary_of(const Values& values) {
  SampleSummary summary;
  for (const float value : values) {
    if (std::isnan(value)) ++summary.nans;
    if (std::isinf(value)) ++summary.infinities;
    if (!std::isfinite(value)) continue;
    summary.min = summary.finite == 0 ? value : std::min(summary.min, value);
    summary.max = summary.finite == 0 ? value : std::max(summary.max, value);
    summary.sum += static_cast<double>(value);
    summary.sum_squares += static_cast<double>(value) * static_cast<double>(value);
    summary.zeros += value == 0.0f ? 1 : 0;
    ++summary.finite;
  }
  if (summary.finite == 0) return summary;
  const auto bins = counted({values}, summary.min, summary.max);
  summary.low = place_of(bins, quant::low_rank(summary.finite));
  summary.high = place_of(bins, quant::high_rank(summary.finite));
  return summary;
}

std::vector<Values> round_samples() {
  std::vector<Values> samples;
  for (unsigned i = 0; i < 6; ++i) {
    samples.push_back(made_up(i, i % 2 == 0 ? 30000 : 500, static_cast<int>(i % 4)));
    for (float& value : samples.back()) {
      value = std::round(value * 64) / 64 * std::ldexp(1.0f, static_cast<int>(i) - 3);
    }
  }
  samples[1][7] = std::numeric_limits<float>::quiet_NaN();
  samples[2][9] = -std::numeric_limits<float>::infinity();
  samples.push_back(Values(3, std::numeric_limits<float>::quiet_NaN()));
  return samples;
}

TEST(Summaries, CountAsTheValuesThemselves) {
  const std::vector<Values> samples = round_samples();
  Statistic expected;
  std::vector<SampleSummary> summaries;
  double min = 0;
  double max = 0;
  for (const Values& values : samples) {
    expected.add_sample(values);
    summaries.push_back(summary_of(values));
    min = std::min<double>(min, summaries.back().min);
    max = std::max<double>(max, summaries.back().max);
  }
  Statistic statistic;
  statistic.add_summaries(summaries, counted(samples, min, max));
  EXPECT_EQ(statistic, expected);
}

TEST(Summaries, JoinWhatWasSeenBefore) {
  const std::vector<Values> samples = round_samples();
  Statistic expected;
  Statistic statistic;
  for (const Values& values : samples) {
    expected.add_sample(values);
    const std::vector<SampleSummary> one = {summary_of(values)};
    statistic.add_summaries(one, counted({values}, one[0].min, one[0].max));
  }
  EXPECT_EQ(statistic, expected);
}

}  // namespace
}  // namespace quench
