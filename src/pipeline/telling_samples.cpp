// SPDX-License-Identifier: Apache-2.0
// Finds the samples in which values reach furthest.
#include "pipeline/telling_samples.h"

#include <algorithm>

namespace quench {
namespace {

constexpr std::int64_t kEnough = 16;
/// At least so many of them from calibration.
constexpr std::int64_t kFurthest = 4;

/// How many values are largest in each run of `step` samples of calibration.
std::vector<std::int64_t> count_largest(const Job& job, std::int64_t step) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(job.parts.calibrate / step));
  for (const auto& [name, statistic] : job.statistics) {
    const auto& entries = statistic.moving_abs_max.entries();
    const auto largest = std::ranges::max_element(entries, {}, &MovingAverage::Entry::value);
    if (largest == entries.end()) continue;
    const auto run = static_cast<std::size_t>(largest->order / step);
    if (run < counts.size()) ++counts[run];
  }
  return counts;
}

}  // namespace

std::vector<SampleRange> telling_samples(const Job& job) {
  const std::int64_t step = run_size(*job.source, model_inputs(job.model.graph));
  const std::int64_t held_out = std::min(job.parts.judge, kEnough - kFurthest) / step * step;
  std::vector<SampleRange> ranges;
  if (held_out > 0) ranges.push_back({.first = job.parts.calibrate, .count = held_out});
  const std::vector<std::int64_t> counts = count_largest(job, step);
  std::vector<std::size_t> runs(counts.size());
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = i;
  std::ranges::stable_sort(runs, std::greater{}, [&](std::size_t run) { return counts[run]; });
  std::int64_t count = held_out;
  for (const std::size_t run : runs) {
    if (count >= kEnough) break;
    ranges.push_back({.first = static_cast<std::int64_t>(run) * step, .count = step});
    count += step;
  }
  return ranges;
}

}  // namespace quench
