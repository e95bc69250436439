// SPDX-License-Identifier: Apache-2.0
// Grids of weights: the range, the search for a better one, and rounding that keeps the mean.
#include "quant/weight_group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/format.h"
#include "quant/kernels.h"
#include "quant/weight_loops.h"

namespace quench::quant {
namespace {

constexpr float kSmallest = std::numeric_limits<float>::min();

std::int64_t count_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size());
}

Grid loop_grid(const GroupGrid& grid, const Steps& steps) {
  return {grid.scale, static_cast<float>(steps.low - grid.zero),
          static_cast<float>(steps.high - grid.zero), static_cast<float>(grid.zero)};
}

GroupGrid cover(double low, double high, const WeightSpec& spec) {
  const Steps steps = steps_of(spec);
  if (low == high) return {1.0F, 0};
  if (spec.symmetric) {
    const double step = std::max(-low, high) / static_cast<double>(steps.high);
    return {std::max(static_cast<float>(step), kSmallest), 0};
  }
  const double step = (high - low) / static_cast<double>(steps.high - steps.low);
  const float scale = std::max(static_cast<float>(step), kSmallest);
  const double zero = std::nearbyint(steps.low - low / static_cast<double>(scale));
  return {scale, static_cast<int>(std::clamp(zero, static_cast<double>(steps.low),
                                             static_cast<double>(steps.high)))};
}

/// Tries narrower ranges, then finer around the best of them.
GroupGrid search(std::span<const float> values, const Extent& extent, const WeightSpec& spec) {
  const Steps steps = steps_of(spec);
  const auto low = static_cast<double>(extent.low);
  const auto high = static_cast<double>(extent.high);
  GroupGrid best = cover(low, high, spec);
  double least = squared_error(values.data(), count_of(values), loop_grid(best, steps));
  double best_factor = 1;
  const auto attempt = [&](double factor) {
    const GroupGrid grid = cover(low * factor, high * factor, spec);
    const double error = squared_error(values.data(), count_of(values), loop_grid(grid, steps));
    if (!(error < least)) return;
    least = error;
    best = grid;
    best_factor = factor;
  };
  for (int percent = 96; percent >= 24; percent -= 4) attempt(percent / 100.0);
  const double middle = best_factor;
  for (int k = -3; k <= 3; ++k) {
    if (k != 0 && middle + 0.01 * k < 1) attempt(middle + 0.01 * k);
  }
  return best;
}

/// With the integers fixed, the scale of least squared error is a division.
template <typename Integer>
void refit(std::span<const float> values, const Integer* integers, GroupGrid& grid) {
  const Moments sums = moments_of(values.data(), integers, count_of(values), grid.scale, grid.zero);
  const double scale = sums.integers > 0 ? sums.cross / sums.integers : 0;
  if (scale >= static_cast<double>(kSmallest)) grid.scale = static_cast<float>(scale);
}

/// Rounds those elements the other way that are nearest to the middle of two steps, until the
/// errors of the group cancel: an input with a mean then sees no shift.
template <typename Integer>
void keep_mean(std::span<const float> values, const Steps& steps, const GroupGrid& grid,
               Integer* integers) {
  const Moments sums = moments_of(values.data(), integers, count_of(values), grid.scale, grid.zero);
  const auto scale = static_cast<double>(grid.scale);
  const auto flips = static_cast<std::size_t>(std::abs(std::nearbyint(sums.drift / scale)));
  if (flips == 0) return;
  const int direction = sums.drift > 0 ? 1 : -1;
  struct Candidate {
    float error;
    std::int32_t index;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int moved = integers[i] + direction;
    const float error = (values[i] - grid.scale * static_cast<float>(integers[i] - grid.zero)) *
                        static_cast<float>(direction);
    if (error > 0 && moved >= steps.low && moved <= steps.high) {
      candidates.push_back({error, static_cast<std::int32_t>(i)});
    }
  }
  const std::size_t count = std::min(flips, candidates.size());
  const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(candidates.begin(), middle, candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.error > b.error; });
  for (std::size_t i = 0; i < count; ++i) {
    Integer& integer = integers[static_cast<std::size_t>(candidates[i].index)];
    integer = static_cast<Integer>(integer + direction);
  }
}

}  // namespace

Steps steps_of(const WeightSpec& spec) noexcept {
  if (spec.bits == 1) return {-1, 1};
  const int half = 1 << (spec.bits - 1);
  return {spec.symmetric ? 1 - half : -half, half - 1};
}

GroupGrid choose_grid(std::span<const float> values, const WeightSpec& spec) {
  const Extent extent = extent_of(values.data(), count_of(values));
  if (!extent.finite) {
    fail(ErrorKind::BadModel, "it holds NaN or infinity, which no integer stands for");
  }
  if (extent.low == extent.high) return {};
  if (spec.bits == 1) {
    const double mean =
        sum_of_magnitudes(values.data(), count_of(values)) / static_cast<double>(values.size());
    return {std::max(static_cast<float>(mean), kSmallest), 0};
  }
  if (spec.least_error) return search(values, extent, spec);
  GroupGrid grid = cover(static_cast<double>(extent.low), static_cast<double>(extent.high), spec);
  if (spec.symmetric) grid.scale = std::max(grid.scale, static_cast<float>(spec.step));
  return grid;
}

template <typename Integer>
void round_to_grid(std::span<const float> values, const WeightSpec& spec, const GroupGrid& grid,
                   Integer* dst) {
  if (spec.bits > 1) {
    return quantize(values.data(), count_of(values), loop_grid(grid, steps_of(spec)), dst);
  }
  const bool zeros = std::ranges::all_of(values, [](float value) { return value == 0.0F; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    dst[i] = static_cast<Integer>(zeros ? 0 : values[i] < 0 ? -1 : 1);
  }
}

template <typename Integer>
GroupGrid solve_group(std::span<const float> values, const WeightSpec& spec, Integer* dst) {
  GroupGrid grid = choose_grid(values, spec);
  round_to_grid(values, spec, grid, dst);
  if (spec.bits == 1) return grid;
  if (spec.least_error) refit(values, dst, grid);
  if (spec.keep_mean) keep_mean(values, steps_of(spec), grid, dst);
  return grid;
}

template <typename Integer>
Power measure(std::span<const float> values, const Integer* integers, const GroupGrid& grid) {
  const Moments sums = moments_of(values.data(), integers, count_of(values), grid.scale, grid.zero);
  return {sums.values, sums.errors};
}

template void round_to_grid(std::span<const float>, const WeightSpec&, const GroupGrid&,
                            std::int8_t*);
template void round_to_grid(std::span<const float>, const WeightSpec&, const GroupGrid&,
                            std::int16_t*);
template GroupGrid solve_group(std::span<const float>, const WeightSpec&, std::int8_t*);
template GroupGrid solve_group(std::span<const float>, const WeightSpec&, std::int16_t*);
template Power measure(std::span<const float>, const std::int8_t*, const GroupGrid&);
template Power measure(std::span<const float>, const std::int16_t*, const GroupGrid&);

}  // namespace quench::quant
