// SPDX-License-Identifier: Apache-2.0
// What ONNX's DequantizeLinear makes of constants.
#include "quant/dequantize_linear.h"

namespace quench::quant {

std::vector<std::size_t> scale_places(const Shape& shape, const Tensor& scale, std::int64_t axis) {
  const auto count = static_cast<std::size_t>(num_elements(shape).value_or(0));
  std::vector<std::size_t> places(count, 0);
  if (scale.size() == 1) return places;
  // One scale for each index of the axis is as blocks that reach over every other dimension.
  Shape blocks = scale.shape();
  if (scale.rank() == 1) {
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
    blocks.assign(shape.size(), 1);
    blocks.at(along) = scale.size();
    if (shape[along] == scale.size()) {
      std::size_t inner = 1;
      for (std::size_t d = along + 1; d < shape.size(); ++d) {
        inner *= static_cast<std::size_t>(shape[d]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        places[i] = i / inner % static_cast<std::size_t>(scale.size());
      }
      return places;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t place = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::int64_t block = (shape[d] + blocks[d] - 1) / blocks[d];
      place += rest % shape[d] / block * stride;
      stride *= blocks[d];
      rest /= shape[d];
    }
    places[i] = static_cast<std::size_t>(place);
  }
  return places;
}

std::vector<float> dequantize_linear(const Tensor& integers, const Tensor& scale,
                                     const Tensor* zero, std::int64_t axis) {
  const std::vector<float> scales = to_float(scale);
  std::vector<float> zeros = zero == nullptr ? std::vector<float>(1, 0.0F) : to_float(*zero);
  if (zeros.size() != 1) zeros.resize(scales.size(), 0.0F);
  const std::vector<std::size_t> places = scale_places(integers.shape(), scale, axis);
  std::vector<float> numbers = to_float(integers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float origin = zeros[zeros.size() == 1 ? 0 : places[i]];
    numbers[i] = (numbers[i] - origin) * scales[places[i]];
  }
  return numbers;
}

}  // namespace quench::quant
