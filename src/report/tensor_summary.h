// SPDX-License-Identifier: Apache-2.0
// Order statistics and moments of a tensor in linear time.
#pragma once

#include <span>

namespace quench::report {

/// What converter_lite's tables say of a tensor.
struct TensorSummary {
  double min = 0, q1 = 0, median = 0, q3 = 0, max = 0;
  double mean = 0, variance = 0;
  double zeros = 0;  ///< share
};
/// Exact: the quartile at share s is the value that stands at s * size in sorted order.
TensorSummary summary_of(std::span<const float> values);

/// A tensor beside what became of it.
struct TensorDistance {
  double clipped = 0;  ///< share of the first that lies outside of the second's range
  double cosine = 1;
};
/// Both have the same size, which is not 0; `after` is the summary of the second.
TensorDistance distance_of(std::span<const float> real, std::span<const float> quantized,
                           const TensorSummary& after);

}  // namespace quench::report
