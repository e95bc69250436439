// SPDX-License-Identifier: Apache-2.0
// What calibration remembers of a tensor, and the observers that choose ranges from it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/quant.h"
#include "quench/summary.h"

namespace quench {

/// A sum of doubles without rounding, so that the order of adding does not matter. Covers what
/// float32 values, their squares and any number of them can come to.
class ExactSum {
 public:
  static constexpr int kLimbs = 21;
  void add(double value) noexcept;
  void add(const ExactSum& other) noexcept;
  double value() const noexcept;
  operator double() const noexcept { return value(); }
  /// The state, for the file form: limbs of 32 bits, lowest first; the last carries the sign.
  const std::array<std::int64_t, kLimbs>& limbs() const noexcept { return limbs_; }
  void set_limbs(const std::array<std::int64_t, kLimbs>& limbs) noexcept;
  bool operator==(const ExactSum&) const = default;

 private:
  void carry() noexcept;
  std::array<std::int64_t, kLimbs> limbs_{};
};

/// PaddleSlim's moving average: the newest value has weight 1, the one before 0.9, and so on. Keeps
/// the values that still weigh something with their place in the order, so that parts can be
/// joined.
class MovingAverage {
 public:
  static constexpr std::size_t kKept = 384;  ///< 0.9 to that power is below the last bit of 1
  struct Entry {
    std::int64_t order;
    float value;
    auto operator<=>(const Entry&) const = default;  // NOLINT(modernize-use-nullptr): clang 14 errs
  };
  void add(const Entry& entry);
  void merge(const MovingAverage& other);
  double value() const noexcept;
  operator double() const noexcept { return value(); }
  /// In order.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  bool operator==(const MovingAverage&) const = default;

 private:
  std::vector<Entry> entries_;
};

/// Runs body(begin, end) over parts of [0, count), on a caller's threads.
using ParallelLoop =
    std::function<void(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>&)>;

/// Everything the observers need of one tensor: streaming, mergeable, of fixed size. The result
/// does not depend on how the samples were cut into batches or spread over threads, bit for bit.
class Statistic {
 public:
  static constexpr std::int64_t kMaxBins = 4096;

  /// Adds one sample's values (one image, one row of a batch). A large sample is cut into pieces
  /// that `parallel`, where given, spreads over threads; the result is the same. `order` is the
  /// sample's place among all, which only the moving average asks for: give it when samples are
  /// spread over several statistics; otherwise it is the number of samples seen here before.
  void add_sample(std::span<const float> values, const ParallelLoop& parallel = {},
                  std::int64_t order = -1);
  /// Adds samples that were looked at elsewhere, and their counts over the bins of all of them.
  void add_summaries(std::span<const SampleSummary> all, std::span<const std::int64_t> counts);
  void merge(const Statistic& other);
  double abs_max() const noexcept;
  double mean() const noexcept;
  double variance() const noexcept;
  bool operator==(const Statistic&) const = default;

  std::int64_t samples = 0;
  std::int64_t count = 0;  ///< finite values; the others are counted here and left out elsewhere
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  double min = 0;
  double max = 0;
  ExactSum sum;
  ExactSum sum_squares;
  ExactSum sum_abs_max;          ///< over samples: for `avg`
  MovingAverage moving_abs_max;  ///< over samples, by their order
  /// Over samples: the 0.01 % and the 99.99 % quantile, for `removal_outlier`. They are read off
  /// the sample's own histogram: exact where they are the extremes (below 10000 values), else off
  /// by less than a 2048th of the sample's range.
  ExactSum sum_low;
  ExactSum sum_high;
  std::int64_t observed = 0;  ///< samples that had a finite value: what those sums divide by

  /// Exact counts over bins [(first_bin + i) * width, (first_bin + i + 1) * width); the width is a
  /// power of two, so that growing the range merges pairs of bins: the smallest with which the
  /// values seen, and zero, fit into kMaxBins. The bins stored reach from min to max.
  double bin_width = 0;
  std::int64_t first_bin = 0;
  std::vector<std::int64_t> bins;
  std::int64_t zeros = 0;  ///< values that are exactly zero (also counted in their bin)
};

/// Statistics by value name, with a file form. `settings` is the caller's own note, such as the
/// model's hash: whoever loads the file decides whether it fits.
using StatisticMap = std::map<std::string, Statistic>;
/// Appears under `path` whole or not at all.
void save_statistics(const StatisticMap& statistics, const std::string& path,
                     std::string_view settings = {});
/// Throws Error(BadData) that names the file when it is not whole.
StatisticMap load_statistics(const std::string& path, std::string* settings = nullptr);
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

/// What `auto` finds: ranges are chosen from one statistic and evaluated by another, of samples
/// that were held out; where that is empty, by the first.
struct ObserverChoice {
  std::string_view observer;
  Range range;
  double error = 0;  ///< mean squared
};
ObserverChoice best_observer(const Statistic& seen, const Statistic& held_out,
                             const QuantSpec& spec);

/// Ranges of a constant weight, one for each index of the spec's axis, by the spec's observer:
/// abs_max, channel_wise_abs_max, mse, channel_wise_mse. Threads do not change the result.
std::vector<Range> weight_ranges(const Tensor& weight, const QuantSpec& spec, int threads = 1);

/// The mean squared error that a scale makes on the values a statistic has seen.
double expected_error(const Statistic& statistic, const QuantParams& params);

}  // namespace quench
