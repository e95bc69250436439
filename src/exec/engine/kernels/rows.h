// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats, made for several generations of processors.
#pragma once

#include <cstdint>

namespace quench::exec {

/// dst = softmax(src) of one row.
void softmax_loop(const float* src, float* dst, std::int64_t columns);
/// The same for rows of few columns that lie one after the other.
void softmax_short_rows_loop(const float* src, float* dst, std::int64_t rows,
                             std::int64_t columns);
/// What a row is normalised with; the bias may be null.
struct RowNorm {
  const float* scale = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
};
/// dst = (src - mean) / sqrt(variance + epsilon) * scale + bias of one row.
void layer_norm_loop(const float* src, const RowNorm& norm, float* dst, std::int64_t columns);
/// dst = src / |src|, the length of the first (sum of sizes) or second (Euclid) kind; zeros stay.
void lp_norm_loop(const float* src, bool second, float* dst, std::int64_t columns);

}  // namespace quench::exec
