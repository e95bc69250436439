// SPDX-License-Identifier: Apache-2.0
// Adding samples to a statistic, and statistics to each other.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "observe/bins.h"
#include "observe/scan.h"
#include "quench/statistics.h"

namespace quench {
namespace {

using observe::BinRange;
using observe::Summary;

using quant::kPiece;
static_assert(Statistic::kMaxBins == quant::kMaxBins);
constexpr std::int64_t kPiecesCounted = observe::kMaxCounted / kPiece;

void in_parts(const ParallelLoop& parallel, std::int64_t count,
              const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (parallel && count > 1) return parallel(count, body);
  body(0, count);
}

std::span<const float> piece_of(std::span<const float> values, std::int64_t piece) {
  const auto begin = static_cast<std::size_t>(piece * kPiece);
  return values.subspan(begin, std::min<std::size_t>(kPiece, values.size() - begin));
}

std::int64_t num_pieces(std::span<const float> values) {
  return (static_cast<std::int64_t>(values.size()) + kPiece - 1) / kPiece;
}

Summary summarize_sample(std::span<const float> values, const ParallelLoop& parallel) {
  const std::int64_t pieces = num_pieces(values);
  std::vector<Summary> parts(static_cast<std::size_t>(pieces));
  in_parts(parallel, pieces, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto piece = piece_of(values, i);
      parts[static_cast<std::size_t>(i)] =
          observe::summarize(piece.data(), static_cast<std::int64_t>(piece.size()));
    }
  });
  Summary total = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    total.min = std::min(total.min, parts[i].min);
    total.max = std::max(total.max, parts[i].max);
    total.sum += parts[i].sum;
    total.sum_squares += parts[i].sum_squares;
    total.zeros += parts[i].zeros;
  }
  return total;
}

observe::Bins narrowed(const BinRange& range) {
  return {static_cast<float>(range.width), static_cast<std::int32_t>(range.first),
          static_cast<std::int32_t>(range.count)};
}

/// Counts pieces [begin, end) into bins of their own.
std::vector<std::uint32_t> count_pieces(std::span<const float> values, const BinRange& range,
                                        std::int64_t begin, std::int64_t end) {
  std::vector<std::uint16_t> lanes(static_cast<std::size_t>(range.count * observe::kLanes));
  std::vector<std::uint32_t> bins(static_cast<std::size_t>(range.count));
  for (std::int64_t i = begin; i < end; ++i) {
    const auto piece = piece_of(values, i);
    observe::count_bins(piece.data(), static_cast<std::int64_t>(piece.size()), narrowed(range),
                        lanes.data());
    const bool full = (i - begin + 1) % kPiecesCounted == 0;
    if (full || i + 1 == end) observe::gather_lanes(lanes.data(), range.count, bins.data());
  }
  return bins;
}

std::vector<std::int64_t> count_sample(std::span<const float> values, std::int64_t pieces,
                                       const BinRange& range, const ParallelLoop& parallel) {
  std::vector<std::int64_t> bins(static_cast<std::size_t>(range.count));
  std::mutex mutex;
  in_parts(parallel, pieces, [&](std::int64_t begin, std::int64_t end) {
    const auto part = count_pieces(values, range, begin, end);
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += part[i];
  });
  return bins;
}

RankPlace place_of(const std::vector<std::int64_t>& bins, std::int64_t rank) {
  RankPlace place;
  std::size_t i = 0;
  while (i + 1 < bins.size() && place.below + bins[i] <= rank) place.below += bins[i++];
  place.bin = static_cast<std::int64_t>(i);
  place.inside = bins[i];
  return place;
}

/// The value that `rank` others lie below, up to where it lies inside its bin.
double value_at(const RankPlace& place, const BinRange& range, std::int64_t rank) {
  const double inside = (static_cast<double>(rank - place.below) + 0.5) /
                        static_cast<double>(std::max<std::int64_t>(place.inside, 1));
  return (static_cast<double>(range.first) + static_cast<double>(place.bin) + inside) * range.width;
}

/// The sample's 0.01 % and 99.99 % quantiles.
Range trimmed_range(const Range& extremes, const RankPlace& low_place, const RankPlace& high_place,
                    std::int64_t count) {
  if (count <= quant::kFewValues) return extremes;
  const auto [min, max] = extremes;
  const BinRange range = observe::bin_range(min, max);
  const std::int64_t low_rank = quant::low_rank(count);
  const std::int64_t high_rank = quant::high_rank(count);
  const double low = low_rank == 0 ? min : value_at(low_place, range, low_rank);
  const double high = high_rank == count - 1 ? max : value_at(high_place, range, high_rank);
  return {std::clamp(low, min, max), std::clamp(high, min, max)};
}

/// Counts the values that are not finite and returns the others.
std::vector<float> leave_out_special(std::span<const float> values, Statistic& statistic) {
  std::vector<float> kept;
  kept.reserve(values.size());
  for (const float value : values) {
    if (std::isnan(value)) {
      ++statistic.nans;
    } else if (std::isinf(value)) {
      ++statistic.infinities;
    } else {
      kept.push_back(value);
    }
  }
  return kept;
}

void widen(Statistic& statistic, double min, double max) {
  statistic.min = statistic.count == 0 ? min : std::min(statistic.min, min);
  statistic.max = statistic.count == 0 ? max : std::max(statistic.max, max);
}

/// Counts the values and finds the range without outliers.
Range add_to_bins(Statistic& statistic, std::span<const float> values, const Range& extremes,
                  const ParallelLoop& parallel) {
  const auto count = static_cast<std::int64_t>(values.size());
  widen(statistic, extremes.min, extremes.max);
  observe::fit_bins(statistic);
  // Few values need no histogram of their own.
  if (count <= quant::kFewValues) {
    const BinRange range{statistic.bin_width, statistic.first_bin,
                         static_cast<std::int64_t>(statistic.bins.size())};
    observe::count_directly(values.data(), count, narrowed(range), statistic.bins.data());
    return extremes;
  }
  const BinRange range = observe::bin_range(extremes.min, extremes.max);
  const auto bins = count_sample(values, num_pieces(values), range, parallel);
  observe::add_bins(statistic, range.width, range.first, bins);
  return trimmed_range(extremes, place_of(bins, quant::low_rank(count)),
                       place_of(bins, quant::high_rank(count)), count);
}

/// What a sample's values come to, without its bins.
struct Sums {
  std::int64_t count;
  std::int64_t zeros;
  double sum;
  double sum_squares;
};

void add_sums(Statistic& statistic, const Sums& sums, const Range& extremes, const Range& trimmed,
              std::int64_t order) {
  const double largest = std::max(std::fabs(extremes.min), std::fabs(extremes.max));
  statistic.count += sums.count;
  statistic.zeros += sums.zeros;
  statistic.sum.add(sums.sum);
  statistic.sum_squares.add(sums.sum_squares);
  statistic.sum_abs_max.add(largest);
  statistic.moving_abs_max.add({order, static_cast<float>(largest)});
  statistic.sum_low.add(trimmed.min);
  statistic.sum_high.add(trimmed.max);
  ++statistic.observed;
}

/// Adding zero turns -0 into 0: which of the two comes first must not show.
Range extremes_of(float min, float max) {
  return {static_cast<double>(min) + 0.0, static_cast<double>(max) + 0.0};
}

void add_finite(Statistic& statistic, std::span<const float> values, const Summary& summary,
                const ParallelLoop& parallel, std::int64_t order) {
  const Range extremes = extremes_of(summary.min, summary.max);
  const Range trimmed = add_to_bins(statistic, values, extremes, parallel);
  add_sums(
      statistic,
      {static_cast<std::int64_t>(values.size()), summary.zeros, summary.sum, summary.sum_squares},
      extremes, trimmed, order);
}

}  // namespace

void Statistic::add_sample(std::span<const float> values, const ParallelLoop& parallel,
                           std::int64_t order) {
  if (order < 0) order = samples;
  ++samples;
  if (values.empty()) return;
  const Summary summary = summarize_sample(values, parallel);
  if (std::isfinite(summary.sum_squares)) {
    return add_finite(*this, values, summary, parallel, order);
  }
  const std::vector<float> kept = leave_out_special(values, *this);
  if (kept.empty()) return;
  add_finite(*this, kept, summarize_sample(kept, parallel), parallel, order);
}

void Statistic::add_summaries(std::span<const SampleSummary> summaries,
                              std::span<const std::int64_t> counts) {
  // The counts lie in the bins of the samples' common range.
  Statistic common;
  for (const SampleSummary& each : summaries) {
    if (each.finite == 0) continue;
    const Range extremes = extremes_of(each.min, each.max);
    widen(common, extremes.min, extremes.max);
    common.count += each.finite;
  }
  if (common.count > 0) {
    widen(*this, common.min, common.max);
    observe::fit_bins(*this);
    const BinRange range = observe::bin_range(common.min, common.max);
    observe::add_bins(*this, range.width, range.first,
                      counts.first(static_cast<std::size_t>(range.count)));
  }
  for (const SampleSummary& each : summaries) {
    const std::int64_t order = samples++;
    nans += each.nans;
    infinities += each.infinities;
    if (each.finite == 0) continue;
    const Range extremes = extremes_of(each.min, each.max);
    add_sums(*this, {each.finite, each.zeros, each.sum, each.sum_squares}, extremes,
             trimmed_range(extremes, each.low, each.high, each.finite), order);
  }
}

void Statistic::merge(const Statistic& other) {
  if (&other == this) return merge(Statistic(other));
  samples += other.samples;
  nans += other.nans;
  infinities += other.infinities;
  if (other.count == 0) return;
  widen(*this, other.min, other.max);
  observe::fit_bins(*this);
  observe::add_bins(*this, other.bin_width, other.first_bin, other.bins);
  count += other.count;
  zeros += other.zeros;
  observed += other.observed;
  sum.add(other.sum);
  sum_squares.add(other.sum_squares);
  sum_abs_max.add(other.sum_abs_max);
  moving_abs_max.merge(other.moving_abs_max);
  sum_low.add(other.sum_low);
  sum_high.add(other.sum_high);
}

double Statistic::abs_max() const noexcept { return std::max(std::fabs(min), std::fabs(max)); }

double Statistic::mean() const noexcept {
  return count > 0 ? sum.value() / static_cast<double>(count) : 0;
}

double Statistic::variance() const noexcept {
  if (count == 0) return 0;
  const double average = mean();
  return std::max(0.0, sum_squares.value() / static_cast<double>(count) - average * average);
}

void merge_statistics(StatisticMap& into, const StatisticMap& other) {
  for (const auto& [name, statistic] : other) into[name].merge(statistic);
}

}  // namespace quench
