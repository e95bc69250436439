// SPDX-License-Identifier: Apache-2.0
// What ONNX's DequantizeLinear makes of constants.
#pragma once

#include <vector>

#include "quench/tensor.h"

namespace quench::quant {

/// (integers - zero) * scale, with one scale, one for each index of `axis`, or one for each block
/// of a scale that has the integers' rank; `zero` may be null and has one element or as many as
/// scales.
std::vector<float> dequantize_linear(const Tensor& integers, const Tensor& scale,
                                     const Tensor* zero, std::int64_t axis);
/// For each element the place of its scale.
std::vector<std::size_t> scale_places(const Shape& shape, const Tensor& scale, std::int64_t axis);

}  // namespace quench::quant
