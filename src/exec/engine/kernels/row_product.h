// SPDX-License-Identifier: Apache-2.0
// Floats of pixels of a row times few columns of weights, straight to where the results belong.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace quench::exec {

/// Weights are packed in so many columns.
inline constexpr std::int64_t kRowLanes = 16;

/// One float of every pixel, and its row of weights: whole registers of columns.
struct RowTap {
  std::int64_t offset = 0;  ///< from the pixel's place
  const float* weights = nullptr;
};

struct RowProduct {
  const float* src = nullptr;  ///< the first pixel's place
  std::int64_t step = 0;       ///< floats to the next one's
  std::span<const RowTap> taps;
  const float* start = nullptr;  ///< what the sums begin with: whole registers of columns
  float least = -std::numeric_limits<float>::infinity();
  float most = std::numeric_limits<float>::infinity();
  float* dst = nullptr;
  std::int64_t stride = 0;  ///< floats to the next pixel's results
  std::int64_t columns = 0;
  std::int64_t pixels = 0;
};

/// Whether this processor has what it takes.
bool can_multiply_rows();
void multiply_row(const RowProduct& row);

}  // namespace quench::exec
