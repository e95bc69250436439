// SPDX-License-Identifier: Apache-2.0
// Finds the samples in which values reach furthest.
#include "tune/telling_samples.h"

#include <algorithm>

namespace quench::tune {
namespace {

/// At least so many of them from calibration.
constexpr std::int64_t kFurthest = 4;

/// How many values are largest in each run of `step` samples of calibration.
std::vector<std::int64_t> count_largest(const State& state, std::int64_t step) {
  std::vector<std::int64_t> counts(
      static_cast<std::size_t>(state.samples.calibration().count / step));
  for (const auto& [name, statistic] : state.statistics) {
    const auto& entries = statistic.moving_abs_max.entries();
    const auto largest = std::ranges::max_element(entries, {}, &MovingAverage::Entry::value);
    if (largest == entries.end()) continue;
    const auto run = static_cast<std::size_t>(largest->order / step);
    if (run < counts.size()) ++counts[run];
  }
  return counts;
}

}  // namespace

std::vector<evaluation::SampleRange> telling_samples(const State& state, std::int64_t count) {
  const std::int64_t step = state.samples.run_size();
  const std::int64_t validating =
      std::min(state.samples.validation().count, count - kFurthest) / step * step;
  std::vector<evaluation::SampleRange> ranges;
  if (validating > 0)
    ranges.push_back({.first = state.samples.calibration().count, .count = validating});
  const std::vector<std::int64_t> counts = count_largest(state, step);
  std::vector<std::size_t> runs(counts.size());
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = i;
  std::ranges::stable_sort(runs, std::greater{}, [&](std::size_t run) { return counts[run]; });
  std::int64_t taken = validating;
  for (const std::size_t run : runs) {
    if (taken >= count) break;
    ranges.push_back({.first = static_cast<std::int64_t>(run) * step, .count = step});
    taken += step;
  }
  return ranges;
}

}  // namespace quench::tune
