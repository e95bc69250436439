// SPDX-License-Identifier: Apache-2.0
// Scales of weights: the range, the search for a better one, and rounding that keeps the mean.
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

/// Narrower ranges have less error where bits are few.
ScaleAndZero search(std::span<const float> values, const Range& range, const WeightSpec& spec) {
  const Steps steps = steps_of(spec);
  const auto scaled = [&](double factor) {
    return cover({range.min * factor, range.max * factor}, steps, spec.symmetric);
  };
  const FactorSearch factors{.first = 96, .last = 24, .step = 4, .fine = 0.01};
  return scaled(best_factor(factors, [&](double factor) {
    return squared_error(values.data(), count_of(values), loop_params(scaled(factor), steps));
  }));
}

/// With the integers fixed, the scale of least squared error is a division.
template <typename Integer>
void refit(std::span<const float> values, const Integer* integers, ScaleAndZero& params) {
  const Moments sums =
      moments_of(values.data(), integers, count_of(values), params.scale, params.zero);
  const double scale = sums.integers > 0 ? sums.cross / sums.integers : 0;
  if (scale >= static_cast<double>(kSmallest)) params.scale = static_cast<float>(scale);
}

/// Rounds those elements the other way that are nearest to the middle of two steps, until the
/// errors of the group cancel: an input with a mean then sees no shift.
template <typename Integer>
void keep_mean(std::span<const float> values, const Steps& steps, const ScaleAndZero& params,
               Integer* integers) {
  const Moments sums =
      moments_of(values.data(), integers, count_of(values), params.scale, params.zero);
  const auto scale = static_cast<double>(params.scale);
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
    const float error = (values[i] - params.scale * static_cast<float>(integers[i] - params.zero)) *
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

namespace {

/// Before any integer is chosen.
ScaleAndZero choose_scale(std::span<const float> values, const WeightSpec& spec) {
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
  const Range range{static_cast<double>(extent.low), static_cast<double>(extent.high)};
  if (spec.least_error) return search(values, range, spec);
  ScaleAndZero params = cover(range, steps_of(spec), spec.symmetric);
  if (spec.symmetric) params.scale = std::max(params.scale, static_cast<float>(spec.step));
  return params;
}

/// The nearest integers; one bit: the sign, and 0 in a group of zeros.
template <typename Integer>
void round_to(std::span<const float> values, const WeightSpec& spec, const ScaleAndZero& params,
              Integer* dst) {
  if (spec.bits > 1) {
    return quantize(values.data(), count_of(values), loop_params(params, steps_of(spec)), dst);
  }
  const bool zeros = std::ranges::all_of(values, [](float value) { return value == 0.0F; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    dst[i] = static_cast<Integer>(zeros ? 0 : values[i] < 0 ? -1 : 1);
  }
}

}  // namespace

template <typename Integer>
ScaleAndZero solve_group(std::span<const float> values, const WeightSpec& spec, Integer* dst) {
  ScaleAndZero params = choose_scale(values, spec);
  round_to(values, spec, params, dst);
  if (spec.bits == 1) return params;
  if (spec.least_error) refit(values, dst, params);
  if (spec.keep_mean) keep_mean(values, steps_of(spec), params, dst);
  return params;
}

template <typename Integer>
Power measure(std::span<const float> values, const Integer* integers, const ScaleAndZero& params) {
  const Moments sums =
      moments_of(values.data(), integers, count_of(values), params.scale, params.zero);
  return {sums.values, sums.errors};
}

template ScaleAndZero solve_group(std::span<const float>, const WeightSpec&, std::int8_t*);
template ScaleAndZero solve_group(std::span<const float>, const WeightSpec&, std::int16_t*);
template Power measure(std::span<const float>, const std::int8_t*, const ScaleAndZero&);
template Power measure(std::span<const float>, const std::int16_t*, const ScaleAndZero&);

}  // namespace quench::quant
