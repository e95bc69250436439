// SPDX-License-Identifier: Apache-2.0
// Made-up activations for the tests of statistics and observers.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "quench/statistics.h"

namespace quench::testing {

using Values = std::vector<float>;

/// Bell-shaped values; `shape` 1 folds away the negative ones as a ReLU does, 2 has heavy tails, 3
/// is all negative.
inline Values made_up(unsigned seed, std::size_t size, int shape = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.3f, 1.0f);
  Values values(size);
  for (float& value : values) {
    value = normal(random);
    if (shape == 1) value = std::max(0.0f, value);
    if (shape == 2) value = value * value * value;
    if (shape == 3) value = -std::fabs(value) - 0.5f;
  }
  return values;
}

/// `first` is the place of the first sample among all.
inline Statistic statistic_of(const std::vector<Values>& samples, std::int64_t first = 0) {
  Statistic statistic;
  for (const Values& values : samples) statistic.add_sample(values, {}, first++);
  return statistic;
}

}  // namespace quench::testing
