// SPDX-License-Identifier: Apache-2.0
// From a range to a scale and zero point.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "quant/cover.h"

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

/// The zero point where it does not follow from a range.
std::int32_t zero_of(const quant::Steps& steps, bool symmetric) {
  return symmetric ? (steps.low + steps.high + 1) / 2 : steps.low;
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

namespace quant {

ScaleAndZero cover(const Range& range, const Steps& steps, bool symmetric) {
  const auto low = static_cast<double>(steps.low);
  const auto high = static_cast<double>(steps.high);
  std::int32_t zero = zero_of(steps, true);
  const double wanted = symmetric ? std::max(range.max / (high - static_cast<double>(zero)),
                                             -range.min / (static_cast<double>(zero) - low))
                                  : (range.max - range.min) / (high - low);
  const auto scale = static_cast<float>(std::clamp(wanted, kSmallest, kLargest));
  if (!symmetric) {
    const double exact = low - range.min / static_cast<double>(scale);
    zero = static_cast<std::int32_t>(std::clamp(std::nearbyint(exact), low, high));
  }
  return {scale, zero};
}

LoopParams loop_params(const ScaleAndZero& params, const Steps& steps) {
  return {params.scale, static_cast<float>(steps.low - params.zero),
          static_cast<float>(steps.high - params.zero), static_cast<float>(params.zero)};
}

}  // namespace quant

QuantParams choose_params(const QuantSpec& spec, const std::vector<Range>& ranges) {
  check(spec, ranges);
  QuantParams params{spec, {}, {}};
  params.scale.reserve(ranges.size());
  params.zero_point.reserve(ranges.size());
  const quant::Steps steps{static_cast<std::int32_t>(spec.q_min()),
                           static_cast<std::int32_t>(spec.q_max())};
  float largest = 0;
  for (const Range& given : ranges) {
    const Range range = with_zero(given);
    const quant::ScaleAndZero found =
        range.min == range.max ? quant::ScaleAndZero{0.0F, zero_of(steps, spec.symmetric)}
                               : quant::cover(range, steps, spec.symmetric);
    largest = std::max(largest, found.scale);
    params.scale.push_back(found.scale);
    params.zero_point.push_back(found.zero);
  }
  // A channel of zeros fits any scale. Its neighbours' keeps the product of scales, with which the
  // bias is stored, in a sensible order of magnitude; a tiny one would overflow the bias.
  for (float& scale : params.scale) {
    if (scale == 0.0F) scale = largest > 0.0F ? largest : 1.0F;
  }
  return params;
}

}  // namespace quench
