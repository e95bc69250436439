// SPDX-License-Identifier: Apache-2.0
// The loops that quantise a run of values with one scale, or with one each.
#pragma once

#include <cstdint>

namespace quench::quant {

/// One channel's scale, as the loops want it: integers are counted from the zero point.
struct LoopParams {
  float scale;
  float low;   ///< q_min - zero_point
  float high;  ///< q_max - zero_point
  float zero_point;
};

/// A scale for each element of a row, as LoopParams has them for all.
struct RowParams {
  const float* scale;
  const float* low;
  const float* high;
  const float* zero_point;
};

/// `Integer` is int8_t, uint8_t, int16_t or uint16_t. NaN becomes zero.
template <typename Integer>
void quantize(const float* src, std::int64_t count, const LoopParams& params, Integer* dst);
template <typename Integer>
void dequantize(const Integer* src, std::int64_t count, const LoopParams& params, float* dst);
void fake_quantize(const float* src, std::int64_t count, const LoopParams& params, float* dst);
/// Likewise a row whose elements have a scale each.
template <typename Integer>
void quantize(const float* src, std::int64_t count, const RowParams& params, Integer* dst);
template <typename Integer>
void dequantize(const Integer* src, std::int64_t count, const RowParams& params, float* dst);
void fake_quantize(const float* src, std::int64_t count, const RowParams& params, float* dst);
/// Sum of the squared errors that the scale makes.
double squared_error(const float* src, std::int64_t count, const LoopParams& params);

}  // namespace quench::quant
