// SPDX-License-Identifier: Apache-2.0
// What calibration remembers of a tensor, and the observers that choose ranges from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/quant.h"

namespace quench {

/// Everything the observers need of one tensor: streaming, mergeable, of fixed size. The result
/// does not depend on how the samples were cut into batches or spread over threads.
class Statistic {
 public:
  /// Adds one sample's values (one image, one row of a batch).
  void add_sample(std::span<const float> values);
  void merge(const Statistic& other);

  std::int64_t samples = 0;
  std::int64_t count = 0;  ///< finite values
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  double sum_squares = 0;
  double sum_abs_max = 0;     ///< over samples: for `avg`
  double moving_abs_max = 0;  ///< PaddleSlim's moving average over samples, in order
  double sum_low = 0;         ///< over samples: the 0.01 % quantile, for `removal_outlier`
  double sum_high = 0;        ///< and the 99.99 % one

  /// Exact counts over bins [(first_bin + i) * width, (first_bin + i + 1) * width); the width is a
  /// power of two, so that growing the range merges pairs of bins.
  double bin_width = 0;
  std::int64_t first_bin = 0;
  std::vector<std::int64_t> bins;
  std::int64_t zeros = 0;  ///< values that are exactly zero (also counted in their bin)
};

/// Statistics by value name, with a file form.
using StatisticMap = std::map<std::string, Statistic>;
void save_statistics(const StatisticMap& statistics, const std::string& path);
StatisticMap load_statistics(const std::string& path);
void merge_statistics(StatisticMap& into, const StatisticMap& other);

/// An observer of the list that `quench list observers` shows.
struct ObserverInfo {
  std::string_view name;
  std::string_view alias;  ///< the other system's name, such as MAX_MIN
  std::string_view summary;
  Range (*range)(const Statistic& statistic, const QuantSpec& spec);
};
std::span<const ObserverInfo> all_observers() noexcept;
/// By name or alias, case-insensitive; throws Error(Usage) with the nearest.
const ObserverInfo& find_observer(std::string_view name);

/// Ranges of a constant weight, one for each index of the spec's axis, by the spec's observer:
/// abs_max, channel_wise_abs_max, mse, channel_wise_mse.
std::vector<Range> weight_ranges(const Tensor& weight, const QuantSpec& spec);

/// The mean squared error that a grid makes on the values a statistic has seen.
double expected_error(const Statistic& statistic, const QuantParams& params);

}  // namespace quench
