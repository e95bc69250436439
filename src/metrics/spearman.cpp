// SPDX-License-Identifier: Apache-2.0
// Spearman's correlation of ranks with the reference, over all samples.
#include <algorithm>
#include <numeric>

#include "metrics/correlation.h"

namespace quench::metrics {
namespace {

/// The place of each value in order; equal values share the mean of their places.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    if (end == begin) end = begin + 1;  // NaN is not even equal to itself
    const double rank = static_cast<double>(begin + end - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

class Spearman final : public Correlation {
 public:
  double value() const override { return correlation(ranks_of(actual_), ranks_of(expected_)); }
};

}  // namespace

MetricEntry spearman() {
  return {
      .info =
          {"spearman",
           "sentence pairs: Spearman's correlation of ranks with the reference over all samples",
           false, true},
      .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Spearman>(); },
      .fits = is_one_number,
      .whole = true};
}

}  // namespace quench::metrics
