// SPDX-License-Identifier: Apache-2.0
// What quantising a tensor means: what is asked, the scales that were chosen, the arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quench/tensor.h"

namespace quench {

/// The interval of floats that a scale must cover.
struct Range {
  double min = 0;
  double max = 0;
  bool operator==(const Range&) const = default;
};

/// What is asked of a tensor's scale, before any data are seen.
struct QuantSpec {
  int bits = 8;
  bool is_signed = true;
  bool symmetric = true;  ///< zero point in the middle (0 when signed)
  bool narrow = false;    ///< leave out the lowest step, so that signed scales mirror
  int axis = -1;          ///< one scale for each index of this axis; -1: one for the tensor
  std::string observer;   ///< how the range is chosen: "mse", "KL", "abs_max" and so on
  double hist_percent = 0.99999;
  int bins = 2048;  ///< the least that KL and hist look at; statistics keep 4096 at most

  std::int64_t q_min() const noexcept;
  std::int64_t q_max() const noexcept;
  /// The type that holds the integers: int8, uint8, int16, uint16.
  DType dtype() const noexcept;
  bool operator==(const QuantSpec&) const = default;
};

/// Scales and zero points: float = (integer - zero_point) * scale, for each channel or for the
/// whole tensor.
struct QuantParams {
  QuantSpec spec;
  std::vector<float> scale;
  std::vector<std::int32_t> zero_point;
  bool operator==(const QuantParams&) const = default;
};

/// The scale that covers a range: zero is always exact, the scale finite and positive.
QuantParams choose_params(const QuantSpec& spec, const std::vector<Range>& ranges);

/// Rounds to nearest even and saturates. `axis` of the spec counts in the tensor's shape.
Tensor quantize_tensor(const Tensor& real, const QuantParams& params);
Tensor dequantize_tensor(const Tensor& integers, const QuantParams& params);
/// Both at once: what a runtime computes with.
Tensor fake_quantize(const Tensor& real, const QuantParams& params);

}  // namespace quench
