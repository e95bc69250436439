// SPDX-License-Identifier: Apache-2.0
// One group of weights: the choice of its scale and zero point, and its integers.
#pragma once

#include <cstdint>
#include <span>

#include "quant/cover.h"
#include "quant/weight.h"

namespace quench::quant {

/// Sums of squares.
struct Power {
  double signal = 0;
  double noise = 0;
};

/// The smallest and largest integer of a spec. One bit is -1 and 1.
Steps steps_of(const WeightSpec& spec) noexcept;

/// Chooses scale, zero point and integers, refits the scale and keeps the mean, as the spec asks.
template <typename Integer>
ScaleAndZero solve_group(std::span<const float> values, const WeightSpec& spec, Integer* dst);
template <typename Integer>
Power measure(std::span<const float> values, const Integer* integers, const ScaleAndZero& params);

}  // namespace quench::quant
