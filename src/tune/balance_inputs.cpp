// SPDX-License-Identifier: Apache-2.0
// Ranges of rows, and what scaling them does to the step of a scale.
#include "tune/balance_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quench::tune {
namespace {

/// What is left of the squared error where it is halved.
constexpr double kWorthwhile = 0.25;
/// Rows of zeros, and all but zeros, are not scaled further than this part of the greatest.
constexpr double kLeastRange = 1e-3;

double greatest(const std::vector<double>& ranges) {
  return ranges.empty() ? 0 : *std::ranges::max_element(ranges);
}

/// The squared error after the rows are divided, in parts of what it was: a scale's error goes with
/// its step, and the activations multiply that of a row with its factor.
double remaining(const std::vector<double>& ranges, const std::vector<float>& factors) {
  double range = 0;
  double power = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto factor = static_cast<double>(factors[i]);
    range = std::max(range, ranges[i] / factor);
    power += factor * factor;
  }
  const double step = range / greatest(ranges);
  return step * step * power / static_cast<double>(ranges.size());
}

}  // namespace

std::vector<double> row_ranges(const Tensor& matrix) {
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  const auto values = matrix.data<float>();
  std::vector<double> ranges(static_cast<std::size_t>(matrix.shape()[0]));
  for (std::size_t row = 0; row < ranges.size(); ++row) {
    for (const float value : values.subspan(row * columns, columns)) {
      ranges[row] = std::max(ranges[row], std::abs(static_cast<double>(value)));
    }
  }
  return ranges;
}

std::vector<float> balance_inputs(std::span<const std::vector<double>> all) {
  const bool usable =
      !all.empty() && std::ranges::all_of(all, [](const std::vector<double>& ranges) {
        return std::isfinite(greatest(ranges)) &&
               greatest(ranges) > static_cast<double>(std::numeric_limits<float>::min());
      });
  if (!usable) return {};
  std::vector<float> factors(all.front().size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    double share = kLeastRange;
    for (const auto& ranges : all) share = std::max(share, ranges[i] / greatest(ranges));
    factors[i] = static_cast<float>(std::sqrt(share));
  }
  double left = 0;
  for (const auto& ranges : all)
    left += remaining(ranges, factors) / static_cast<double>(all.size());
  return left <= kWorthwhile ? factors : std::vector<float>();
}

Tensor divide_rows(const Tensor& matrix, std::span<const float> factors) {
  Tensor result = matrix;
  const auto columns = static_cast<std::size_t>(matrix.shape()[1]);
  const auto values = result.mutable_data<float>();
  for (std::size_t row = 0; row < factors.size(); ++row) {
    for (float& value : values.subspan(row * columns, columns)) value /= factors[row];
  }
  return result;
}

}  // namespace quench::tune
