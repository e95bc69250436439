// SPDX-License-Identifier: Apache-2.0
// From a range to a grid.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "quench/quant.h"

namespace quench {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();
// Scales below the smallest normal number would be flushed to zero by some runtimes.
constexpr double kSmallest = std::numeric_limits<float>::min();

double finite(double value) {
  return std::isnan(value) ? 0.0 : std::clamp(value, -kLargest, kLargest);
}

/// Zero must have an integer of its own, so it must lie inside.
Range with_zero(const Range& range) {
  return {std::min(finite(range.min), 0.0), std::max(finite(range.max), 0.0)};
}

std::int32_t middle(const QuantSpec& spec) {
  return spec.is_signed ? 0 : static_cast<std::int32_t>(std::int64_t{1} << (spec.bits - 1));
}

float step_of(const QuantSpec& spec, const Range& range) {
  double step = 0;
  if (spec.symmetric) {
    const auto zero = static_cast<double>(middle(spec));
    step = std::max(range.max / (static_cast<double>(spec.q_max()) - zero),
                    -range.min / (zero - static_cast<double>(spec.q_min())));
  } else {
    step = (range.max - range.min) / static_cast<double>(spec.q_max() - spec.q_min());
  }
  return static_cast<float>(std::clamp(step, kSmallest, kLargest));
}

std::int32_t zero_of(const QuantSpec& spec, const Range& range, float step) {
  if (spec.symmetric) return middle(spec);
  const double exact = static_cast<double>(spec.q_min()) - range.min / static_cast<double>(step);
  return static_cast<std::int32_t>(std::clamp(
      std::nearbyint(exact), static_cast<double>(spec.q_min()), static_cast<double>(spec.q_max())));
}

void check(const QuantSpec& spec, const std::vector<Range>& ranges) {
  if (spec.bits < 2 || spec.bits > 16) {
    fail(ErrorKind::Usage, "integers have 2 to 16 bits, not {}", spec.bits);
  }
  if (ranges.empty()) fail(ErrorKind::Usage, "a scale needs at least one range, none was given");
  if (spec.axis < 0 && ranges.size() != 1) {
    fail(ErrorKind::Usage, "a tensor without an axis has one range, not {}", ranges.size());
  }
}

}  // namespace

QuantParams choose_params(const QuantSpec& spec, const std::vector<Range>& ranges) {
  check(spec, ranges);
  QuantParams params{spec, {}, {}};
  params.scale.reserve(ranges.size());
  params.zero_point.reserve(ranges.size());
  float largest = 0;
  for (const Range& given : ranges) {
    const Range range = with_zero(given);
    const bool empty = range.min == range.max;
    const float step = empty ? 0.0F : step_of(spec, range);
    largest = std::max(largest, step);
    params.scale.push_back(step);
    params.zero_point.push_back(empty ? zero_of(spec, {0, 0}, 1.0F) : zero_of(spec, range, step));
  }
  // A channel of zeros fits any scale. Its neighbours' keeps the product of scales, with which the
  // bias is stored, in a sensible order of magnitude; a tiny one would overflow the bias.
  for (float& step : params.scale) {
    if (step == 0.0F) step = largest > 0.0F ? largest : 1.0F;
  }
  return params;
}

}  // namespace quench
