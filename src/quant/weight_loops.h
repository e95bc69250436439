// SPDX-License-Identifier: Apache-2.0
// The loops over a group of weights, made for several generations of x86.
#pragma once

#include <cstdint>

namespace quench::quant {

/// The ends of a run of values, zero included.
struct Extent {
  float low = 0;
  float high = 0;
  bool finite = true;
};
Extent extent_of(const float* src, std::int64_t count);
double sum_of_magnitudes(const float* src, std::int64_t count);

/// Sums over a run and its integers, counted from the zero point.
struct Moments {
  double values = 0;    ///< of value^2
  double errors = 0;    ///< of (value - scale * integer)^2
  double cross = 0;     ///< of value * integer
  double integers = 0;  ///< of integer^2
  double drift = 0;     ///< of value - scale * integer
};
/// `Integer` is int8_t or int16_t.
template <typename Integer>
Moments moments_of(const float* src, const Integer* integers, std::int64_t count, float scale,
                   int zero);

}  // namespace quench::quant
