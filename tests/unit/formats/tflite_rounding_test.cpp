// SPDX-License-Identifier: Apache-2.0
// Integer TFLite models round as TFLite does: averages always, convolutions where they are asked
// to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quench/error.h"
#include "quench/session.h"
#include "unit/formats/tflite_builder.h"

namespace quench::testing {
namespace {

/// x [1,2,2,4] averaged to one pixel.
TfliteBuilder one_average(std::int64_t zero) {
  TfliteBuilder builder;
  const int x = builder.quantized("x", {1, 2, 2, 4}, 0.5F, zero);
  const int y = builder.quantized("y", {1, 1, 1, 4}, 0.5F, zero);
  auto options = conv_options(false, 2);
  options.push_back(number("filter_w", 2));
  options.push_back(number("filter_h", 2));
  builder.op("AVERAGE_POOL_2D", {x}, {y}, options);
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  return builder;
}

TEST(TfliteRounding, HalvesOfAveragesGoAwayFromZero) {
  // By channel: 2.5, -2.5, 1.5 and 1.25, whatever the zero point is.
  const Tensor x =
      Tensor::of<std::int8_t>({1, 2, 2, 4}, {2, -2, 1, 1, 2, -2, 1, 1, 3, -3, 2, 1, 3, -3, 2, 2});
  for (const std::int64_t zero : {-128, -1, 0, 7}) {
    const TensorMap out = Session(one_average(zero).read()).run({{"x", x}});
    const auto y = out.at("y").data<std::int8_t>();
    EXPECT_EQ(std::vector<int>(y.begin(), y.end()), (std::vector<int>{3, -3, 2, 1})) << zero;
  }
}

/// TFLite's factors: 31 bits and a power of two.
struct Multiplier {
  std::int64_t bits = 0;
  int shift = 0;
};

Multiplier multiplier_of(double factor) {
  Multiplier result;
  result.bits = std::llround(std::frexp(factor, &result.shift) * 2147483648.0);
  return result;
}

/// The high half of the doubled product, rounded, and then a rounded division.
std::int64_t scaled(std::int64_t sum, const Multiplier& by) {
  const std::int64_t product = sum * by.bits;
  const std::int64_t nudge = product >= 0 ? (1 << 30) : 1 - (1 << 30);
  const std::int64_t high = (product + nudge) / (std::int64_t{1} << 31);
  const std::int64_t mask = (std::int64_t{1} << -by.shift) - 1;
  const std::int64_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
  return (high >> -by.shift) + ((high & mask) > threshold ? 1 : 0);
}

constexpr float kIn = 0.05F, kWeight = 0.013F, kOut = 0.003F;

/// Every byte as a pixel through a convolution of one weight.
TfliteBuilder one_weight() {
  TfliteBuilder builder;
  const int x = builder.quantized("x", {1, 16, 16, 1}, kIn, 3);
  const int w = builder.constant("w", Tensor::of<std::int8_t>({1, 1, 1, 1}, {3}));
  builder.program.tensors.back().quantization = {.scale = {kWeight}, .zero_point = {0}, .axis = 0};
  const int b = builder.constant("b", Tensor::of<std::int32_t>({1}, {11}));
  builder.program.tensors.back().quantization = {
      .scale = {kIn * kWeight}, .zero_point = {0}, .axis = 0};
  const int y = builder.quantized("y", {1, 16, 16, 1}, kOut, -2);
  builder.op("CONV_2D", {x, w, b}, {y}, conv_options(true, 1));
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  return builder;
}

TEST(TfliteRounding, ConvolutionsRoundTwiceWhereTheyAreAskedTo) {
  Tensor x = Tensor::zeros(DType::Int8, {1, 16, 16, 1});
  for (int i = 0; i < 256; ++i) {
    x.mutable_data<std::int8_t>()[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(i - 128);
  }
  const Model model = one_weight().read();
  const TensorMap once = Session(model).run({{"x", x}});
  const TensorMap twice = Session(model, {.rounding = Rounding::Twice}).run({{"x", x}});
  const Multiplier by = multiplier_of(static_cast<double>(kIn) * static_cast<double>(kWeight) /
                                      static_cast<double>(kOut));
  int different = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::int64_t sum = (static_cast<std::int64_t>(i) - 128 - 3) * 3 + 11;
    const auto wanted = std::clamp<std::int64_t>(scaled(sum, by) - 2, -128, 127);
    EXPECT_EQ(twice.at("y").data<std::int8_t>()[i], wanted) << i;
    different += once.at("y").data<std::int8_t>()[i] != wanted ? 1 : 0;
  }
  EXPECT_GT(different, 0);
}

TEST(TfliteRounding, WhatItWouldNotChangeIsRefused) {
  EXPECT_THROW(Session(one_average(0).read(), {.rounding = Rounding::Twice}), Error);
  EXPECT_THROW(Session(one_weight().read(), {.tap_all = true, .rounding = Rounding::Twice}), Error);
}

}  // namespace
}  // namespace quench::testing
