// SPDX-License-Identifier: Apache-2.0
// Loops over rows of floats, made for several generations of processors.
#pragma once

#include <cstdint>

namespace quench::exec {

/// x * (1 + erf(x / sqrt(2))) / 2, in place.
void gelu_loop(float* data, std::int64_t size);
/// dst = softmax(src * scale + mask) of one row; the mask may be null.
void softmax_loop(const float* src, float scale, const float* mask, float* dst,
                  std::int64_t columns);
/// The same for rows of few columns that lie one after the other, without a mask.
void softmax_short_rows_loop(const float* src, float scale, float* dst, std::int64_t rows,
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
