// SPDX-License-Identifier: Apache-2.0
// One group of weights: the choice of its grid, and its integers.
#pragma once

#include <cstdint>
#include <span>

#include "quant/weight.h"

namespace quench::quant {

/// real = (integer - zero) * scale.
struct GroupGrid {
  float scale = 1;
  int zero = 0;
};

/// Sums of squares.
struct Power {
  double signal = 0;
  double noise = 0;
};

/// The smallest and largest integer of a spec. One bit is -1 and 1.
struct Steps {
  int low = 0;
  int high = 0;
};
Steps steps_of(const WeightSpec& spec) noexcept;

/// The grid of a group of finite values, before any integer is chosen.
GroupGrid choose_grid(std::span<const float> values, const WeightSpec& spec);
/// The nearest integers; one bit: the sign, and 0 in a group of zeros.
template <typename Integer>
void round_to_grid(std::span<const float> values, const WeightSpec& spec, const GroupGrid& grid,
                   Integer* dst);
/// Chooses the grid and the integers, refits the scale and keeps the mean, as the spec asks.
template <typename Integer>
GroupGrid solve_group(std::span<const float> values, const WeightSpec& spec, Integer* dst);
template <typename Integer>
Power measure(std::span<const float> values, const Integer* integers, const GroupGrid& grid);

}  // namespace quench::quant
