// SPDX-License-Identifier: Apache-2.0
// Weights as integers of any width: grids by channel, by block and for all.
#include "quant/weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quant/weight_loops.h"
#include "quench/error.h"

namespace quench::quant {
namespace {

Tensor noise(Shape shape, float scale = 1.0F, unsigned seed = 3) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  Tensor result = Tensor::zeros(DType::Float32, std::move(shape));
  for (float& value : result.mutable_data<float>()) value = normal(generator);
  return result;
}

double relative(const Tensor& real, const Tensor& other) {
  const auto a = real.data<float>();
  const auto b = other.data<float>();
  double noise_power = 0;
  double signal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    noise_power += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    signal += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(noise_power / signal);
}

// Copies of the loop for newer processors must not fuse products and sums: scales of weights would
// depend on the machine. This file is compiled for every x86, which has no fused products.
TEST(Weight, SumsAreTheSameOnEveryProcessor) {
  const Tensor weight = noise({64}, 0.1F);
  const float* values = weight.data<float>().data();
  std::vector<std::int8_t> integers;
  for (const float value : weight.data<float>()) {
    integers.push_back(static_cast<std::int8_t>(std::nearbyint(value / 0.037F)));
  }
  const Moments sums = moments_of(values, integers.data(), 64, 0.037F, 0);
  double errors = 0;
  double cross = 0;
  for (int lane = 0; lane < 16; ++lane) {
    float lane_errors = 0;
    float lane_cross = 0;
    for (std::size_t i = static_cast<std::size_t>(lane); i < integers.size(); i += 16) {
      const auto step = static_cast<float>(integers[i]);
      const float error = values[i] - 0.037F * step;
      lane_errors += error * error;
      lane_cross += values[i] * step;
    }
    errors += static_cast<double>(lane_errors);
    cross += static_cast<double>(lane_cross);
  }
  EXPECT_EQ(sums.errors, errors);
  EXPECT_EQ(sums.cross, cross);
}

TEST(Weight, ErrorHalvesWithEveryBit) {
  const Tensor weight = noise({40, 64});
  double before = 1e9;
  for (int bits = 1; bits <= 16; ++bits) {
    const QuantWeight made = quantize_weight(weight, {.bits = bits, .axis = 0}, 1);
    EXPECT_EQ(made.spec.bits, bits);
    EXPECT_EQ(made.integers.dtype(), bits <= 4   ? DType::Int4
                                     : bits <= 8 ? DType::Int8
                                                 : DType::Int16);
    const double error = relative(weight, dequantize_weight(made, 1));
    EXPECT_NEAR(error, made.relative_error(), 1e-3 * made.relative_error() + 1e-7) << bits;
    if (bits >= 3) {
      EXPECT_LT(error, before * 0.6) << bits;
    }
    before = error;
  }
  EXPECT_LT(before, 1e-4);
}

TEST(Weight, GridsLieWhereTheyAreAsked) {
  const Tensor weight = noise({6, 10, 4});
  const auto shape_of = [&](int axis, std::int64_t block) {
    return quantize_weight(weight, {.axis = axis, .block = block}, 1).scale.shape();
  };
  EXPECT_EQ(shape_of(-1, 0), Shape{});
  EXPECT_EQ(shape_of(0, 0), Shape{6});
  EXPECT_EQ(shape_of(1, 0), Shape{10});
  EXPECT_EQ(shape_of(2, 0), Shape{4});
  EXPECT_EQ(shape_of(1, 4), (Shape{6, 3, 4}));
  EXPECT_EQ(shape_of(2, 2), (Shape{6, 10, 2}));
}

/// Elements of one group are multiples of its own scale, so any mix-up of groups shows.
TEST(Weight, EveryLayoutFindsItsOwnScales) {
  for (const auto& [axis, block] :
       {std::pair{-1, 0}, {0, 0}, {1, 0}, {2, 0}, {0, 4}, {1, 4}, {1, 64}, {2, 5}, {2, 16}}) {
    const Tensor weight = noise({9, 10, 21});
    const WeightSpec spec{.bits = 8, .symmetric = true, .axis = axis, .block = block};
    const QuantWeight made = quantize_weight(weight, spec, 3);
    const Tensor exact = dequantize_weight(made, 3);
    // What lies on the grids already comes back as it is.
    const QuantWeight again = quantize_weight(exact, spec, 1);
    EXPECT_LT(again.relative_error(), 1e-6) << axis << " " << block;
    EXPECT_LT(relative(weight, exact), 0.02) << axis << " " << block;
  }
}

TEST(Weight, ThreadsDoNotChangeTheResult) {
  const Tensor weight = noise({700, 600});
  for (const int axis : {0, 1}) {
    const WeightSpec spec{.bits = 4, .axis = axis, .least_error = true, .keep_mean = true};
    const QuantWeight one = quantize_weight(weight, spec, 1);
    const QuantWeight four = quantize_weight(weight, spec, 4);
    EXPECT_EQ(one.integers, four.integers);
    EXPECT_EQ(one.scale, four.scale);
    EXPECT_EQ(one.zero_point, four.zero_point);
  }
}

TEST(Weight, SearchIsNeverWorseThanTheWholeRange) {
  Tensor weight = noise({16, 256});
  for (std::size_t i = 0; i < 16; ++i) weight.mutable_data<float>()[i * 256] = 9;  // outliers
  for (int bits = 2; bits <= 8; ++bits) {
    const QuantWeight whole = quantize_weight(weight, {.bits = bits, .axis = 0}, 1);
    const QuantWeight best =
        quantize_weight(weight, {.bits = bits, .axis = 0, .least_error = true}, 1);
    EXPECT_LE(best.noise, whole.noise) << bits;
    if (bits <= 4) {
      EXPECT_LT(best.noise, 0.9 * whole.noise) << bits;
    }
  }
}

TEST(Weight, KeepsTheMeanOfEveryChannel) {
  const Tensor weight = noise({8, 100});
  const WeightSpec plain{.bits = 3, .axis = 0};
  WeightSpec kept = plain;
  kept.keep_mean = true;
  const QuantWeight made = quantize_weight(weight, kept, 1);
  const Tensor real = dequantize_weight(made, 1);
  for (std::size_t channel = 0; channel < 8; ++channel) {
    double drift = 0;
    for (std::size_t i = channel * 100; i < (channel + 1) * 100; ++i) {
      drift += static_cast<double>(weight.data<float>()[i] - real.data<float>()[i]);
    }
    EXPECT_LE(std::abs(drift), 0.51 * static_cast<double>(made.scale.data<float>()[channel]));
  }
  EXPECT_LT(made.noise, 1.2 * quantize_weight(weight, plain, 1).noise);
}

TEST(Weight, ZeroIsExact) {
  Tensor weight = noise({4, 50});
  for (std::size_t i = 0; i < 200; i += 2) weight.mutable_data<float>()[i] = 0;
  for (const int bits : {2, 3, 4, 8, 16}) {
    const Tensor real = dequantize_weight(
        quantize_weight(weight, {.bits = bits, .axis = 0, .least_error = true, .keep_mean = true},
                        1),
        1);
    for (std::size_t i = 0; i < 200; i += 2) EXPECT_EQ(real.data<float>()[i], 0) << bits;
  }
}

TEST(Weight, ZeroAndConstantChannelsSurvive) {
  Tensor weight = Tensor::zeros(DType::Float32, {3, 8});
  for (std::size_t i = 8; i < 16; ++i) weight.mutable_data<float>()[i] = 0.25F;
  for (std::size_t i = 16; i < 24; ++i) weight.mutable_data<float>()[i] = -3e-39F;  // denormal
  for (int bits = 1; bits <= 16; ++bits) {
    for (const bool symmetric : {false, true}) {
      const WeightSpec spec{
          .bits = bits, .symmetric = symmetric, .axis = 0, .least_error = true, .keep_mean = true};
      const QuantWeight made = quantize_weight(weight, spec, 1);
      for (const float scale : made.scale.data<float>()) EXPECT_GT(scale, 0);
      const Tensor real = dequantize_weight(made, 1);
      for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(real.data<float>()[i], 0);
      for (std::size_t i = 8; i < 16; ++i) EXPECT_NEAR(real.data<float>()[i], 0.25F, 1e-6F);
      for (std::size_t i = 16; i < 24; ++i) EXPECT_NEAR(real.data<float>()[i], 0, 1e-37F);
    }
  }
}

TEST(Weight, EmptyTensorsGiveEmptyIntegers) {
  for (const Shape& shape : {Shape{0, 4}, Shape{4, 0}, Shape{0}}) {
    const QuantWeight made =
        quantize_weight(Tensor::zeros(DType::Float32, shape), {.bits = 4, .axis = 0}, 2);
    EXPECT_EQ(made.integers.size(), 0);
    EXPECT_EQ(dequantize_weight(made, 2).shape(), shape);
    EXPECT_EQ(made.relative_error(), 0);
  }
}

TEST(Weight, RefusesWhatNoIntegerStandsFor) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{17}, std::size_t{99}}) {
      Tensor weight = noise({1, 100});
      weight.mutable_data<float>()[place] = bad;
      EXPECT_THROW(quantize_weight(weight, {.axis = 0}, 1), Error);
    }
  }
  for (const int bits : {-1, 0, 17, 32}) {
    EXPECT_THROW(quantize_weight(noise({2, 2}), {.bits = bits}, 1), Error);
  }
  EXPECT_THROW(quantize_weight(noise({2, 2}), {.axis = 2}, 1), Error);
}

TEST(Weight, FourBitsArePackedAsOnnxPacksThem) {
  const std::vector<std::int8_t> integers = {-8, 7, -1, 0, 5};
  const Tensor packed = pack_int4(integers, {5});
  ASSERT_EQ(packed.bytes().size(), 3U);
  EXPECT_EQ(std::to_integer<int>(packed.bytes()[0]), 0x78);
  EXPECT_EQ(std::to_integer<int>(packed.bytes()[1]), 0x0F);
  EXPECT_EQ(std::to_integer<int>(packed.bytes()[2]), 0x05);
  EXPECT_EQ(unpack_int4(packed), integers);
}

TEST(Weight, OneBitIsTheSign) {
  const Tensor weight = Tensor::of<float>({1, 4}, {-1, 3, 2, -2});
  const Tensor real = dequantize_weight(quantize_weight(weight, {.bits = 1, .axis = 0}, 1), 1);
  EXPECT_EQ(real, Tensor::of<float>({1, 4}, {-2, 2, 2, -2}));
}

TEST(Weight, HalfPrecisionIsRead) {
  const Tensor weight = noise({4, 32});
  const QuantWeight made = quantize_weight(convert(weight, DType::Float16), {.axis = 0}, 1);
  EXPECT_LT(relative(weight, dequantize_weight(made, 1)), 0.01);
}

}  // namespace
}  // namespace quench::quant
