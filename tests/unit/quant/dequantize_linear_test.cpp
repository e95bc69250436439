// SPDX-License-Identifier: Apache-2.0
// Constants behind DequantizeLinear: one scale, one for each channel, one for each block.
#include "quant/dequantize_linear.h"

#include <gtest/gtest.h>

namespace quench::quant {
namespace {

using Floats = std::vector<float>;

TEST(DequantizeLinear, TakesTheScaleOfEachElement) {
  const Tensor integers = Tensor::of<std::int8_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor one = Tensor::of<float>({}, {0.5F});
  const Tensor zero = Tensor::of<std::int8_t>({}, {1});
  EXPECT_EQ(dequantize_linear(integers, one, &zero, 1), (Floats{0, 0.5F, 1, 1.5F, 2, 2.5F}));
  const Tensor rows = Tensor::of<float>({2}, {1, 10});
  EXPECT_EQ(dequantize_linear(integers, rows, nullptr, 0), (Floats{1, 2, 3, 40, 50, 60}));
  const Tensor columns = Tensor::of<float>({3}, {1, 10, 100});
  const Tensor zeros = Tensor::of<std::int8_t>({3}, {0, 1, 2});
  EXPECT_EQ(dequantize_linear(integers, columns, &zeros, -1), (Floats{1, 10, 100, 4, 40, 400}));
  const Tensor blocks = Tensor::of<float>({2, 2}, {1, 2, 3, 4});  // of two columns
  EXPECT_EQ(dequantize_linear(integers, blocks, nullptr, 1), (Floats{1, 2, 6, 12, 15, 24}));
}

}  // namespace
}  // namespace quench::quant
