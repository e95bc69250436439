// SPDX-License-Identifier: Apache-2.0
// Grids and the arithmetic on them.
#include "quench/quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quench/error.h"

namespace quench {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<QuantSpec> all_specs() {
  std::vector<QuantSpec> specs;
  for (int bits = 2; bits <= 16; ++bits) {
    for (int flags = 0; flags < 8; ++flags) {
      specs.push_back({.bits = bits,
                       .is_signed = (flags & 1) != 0,
                       .symmetric = (flags & 2) != 0,
                       .narrow = (flags & 4) != 0});
    }
  }
  return specs;
}

TEST(QuantSpec, KnowsItsIntegers) {
  EXPECT_EQ((QuantSpec{.bits = 8}.q_min()), -128);
  EXPECT_EQ((QuantSpec{.bits = 8}.q_max()), 127);
  EXPECT_EQ((QuantSpec{.bits = 8, .narrow = true}.q_min()), -127);
  EXPECT_EQ((QuantSpec{.bits = 8, .is_signed = false}.q_min()), 0);
  EXPECT_EQ((QuantSpec{.bits = 8, .is_signed = false}.q_max()), 255);
  EXPECT_EQ((QuantSpec{.bits = 2}.q_min()), -2);
  EXPECT_EQ((QuantSpec{.bits = 16, .is_signed = false}.q_max()), 65535);
  EXPECT_EQ((QuantSpec{.bits = 4}.dtype()), DType::Int8);
  EXPECT_EQ((QuantSpec{.bits = 8, .is_signed = false}.dtype()), DType::UInt8);
  EXPECT_EQ((QuantSpec{.bits = 9}.dtype()), DType::Int16);
  EXPECT_EQ((QuantSpec{.bits = 16, .is_signed = false}.dtype()), DType::UInt16);
}

TEST(ChooseParams, FollowsTheFormulas) {
  const auto symmetric = choose_params({.bits = 8}, {{-1.27, 0.5}});
  EXPECT_FLOAT_EQ(symmetric.scale[0], 1.27f / 128);
  EXPECT_EQ(symmetric.zero_point[0], 0);
  const auto mirrored = choose_params({.bits = 8, .narrow = true}, {{-1.27, 0.5}});
  EXPECT_FLOAT_EQ(mirrored.scale[0], 0.01f);
  const auto asymmetric = choose_params({.is_signed = false, .symmetric = false}, {{-1, 3}});
  EXPECT_FLOAT_EQ(asymmetric.scale[0], 4.0f / 255);
  EXPECT_EQ(asymmetric.zero_point[0], 64);
  const auto relu = choose_params({.is_signed = false, .symmetric = false}, {{0, 6}});
  EXPECT_FLOAT_EQ(relu.scale[0], 6.0f / 255);
  EXPECT_EQ(relu.zero_point[0], 0);
  const auto shifted = choose_params({.is_signed = true, .symmetric = false}, {{2, 6}});
  EXPECT_FLOAT_EQ(shifted.scale[0], 6.0f / 255);
  EXPECT_EQ(shifted.zero_point[0], -128);
  const auto negative = choose_params({.is_signed = false, .symmetric = false}, {{-5, -2}});
  EXPECT_EQ(negative.zero_point[0], 255);
  const auto middle = choose_params({.is_signed = false, .symmetric = true}, {{-1, 1}});
  EXPECT_EQ(middle.zero_point[0], 128);
  EXPECT_FLOAT_EQ(middle.scale[0], 1.0f / 127);
}

TEST(ChooseParams, SurvivesDegenerateRanges) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Range> ranges = {{0, 0},
                                     {1e-40, 1e-40},
                                     {-1e-45, 1e-45},
                                     {0, 1e-300},
                                     {-kInfinity, 0},
                                     {0, kInfinity},
                                     {-kInfinity, kInfinity},
                                     {std::nan(""), 1},
                                     {std::nan(""), std::nan("")},
                                     {3, -3},
                                     {1e300, 1e308}};
  for (const QuantSpec& spec : all_specs()) {
    for (const Range& range : ranges) {
      const auto params = choose_params(spec, {range});
      EXPECT_TRUE(std::isfinite(params.scale[0])) << range.min << ' ' << range.max;
      EXPECT_GE(params.scale[0], std::numeric_limits<float>::min());
      EXPECT_GE(params.zero_point[0], spec.q_min());
      EXPECT_LE(params.zero_point[0], spec.q_max());
    }
  }
}

TEST(ChooseParams, GivesDeadChannelsTheirNeighboursScale) {
  const auto params = choose_params({.axis = 0}, {{-1, 1}, {0, 0}, {-2, 2}});
  EXPECT_EQ(params.scale[1], params.scale[2]);
}

TEST(ChooseParams, RefusesWhatIsNoGrid) {
  EXPECT_THROW(choose_params({.bits = 1}, {{0, 1}}), Error);
  EXPECT_THROW(choose_params({.bits = 17}, {{0, 1}}), Error);
  EXPECT_THROW(choose_params({}, {}), Error);
  EXPECT_THROW(choose_params({}, {{0, 1}, {0, 1}}), Error);
}

// Inside the range the error is at most half a step; moving the zero point to an integer may move
// an end of the range by another half.
TEST(FakeQuantize, ErrsByHalfAStepAtMost) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const QuantSpec& spec : all_specs()) {
    const double span = std::exp(std::uniform_real_distribution<>(-20, 20)(random));
    const Range range{-span * std::uniform_real_distribution<>(0, 1)(random),
                      span * std::uniform_real_distribution<>(0, 1)(random)};
    const auto params = choose_params(spec, {range});
    std::vector<float> values(500);
    std::uniform_real_distribution<> inside(range.min, range.max);
    for (float& value : values) value = static_cast<float>(inside(random));
    values[0] = 0;
    const Tensor real = Tensor::of<float>({500}, std::span<const float>(values));
    const Tensor fake = fake_quantize(real, params);
    EXPECT_EQ(fake, dequantize_tensor(quantize_tensor(real, params), params));
    const auto scale = static_cast<double>(params.scale[0]);
    const double low = static_cast<double>(spec.q_min() - params.zero_point[0]) * scale;
    const double high = static_cast<double>(spec.q_max() - params.zero_point[0]) * scale;
    EXPECT_EQ(fake.data<float>()[0], 0.0f);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<double>(values[i]);
      const double error = std::fabs(value - static_cast<double>(fake.data<float>()[i]));
      const bool covered = value >= low && value <= high;
      EXPECT_LE(error, scale * (covered ? 0.5 : 1.0) * 1.001 + 1e-6 * std::fabs(value)) << value;
    }
  }
}

TEST(Quantize, RoundsToNearestEvenAndSaturates) {
  const QuantParams params{{.bits = 8}, {1.0f}, {0}};
  const Tensor real =
      Tensor::of<float>({10}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e30f, -1e30f, kInf, -kInf, kNan});
  const Tensor expected = Tensor::of<std::int8_t>({10}, {0, 2, 2, 0, -2, 127, -128, 127, -128, 0});
  EXPECT_EQ(quantize_tensor(real, params), expected);
}

TEST(Quantize, UsesTheGridOfEachChannel) {
  const QuantParams params{
      {.bits = 8, .is_signed = false, .symmetric = false, .axis = 1}, {1.0f, 0.5f}, {0, 10}};
  const Tensor real = Tensor::of<float>({2, 2, 2}, {1, 2, 1, 2, 3, 4, -3, 4});
  const Tensor expected = Tensor::of<std::uint8_t>({2, 2, 2}, {1, 2, 12, 14, 3, 4, 4, 18});
  EXPECT_EQ(quantize_tensor(real, params), expected);
  EXPECT_EQ(fake_quantize(real, params), real);
}

// Channels that lie side by side are rounded as rows, others run by run: to the same integers.
TEST(Quantize, RoundsChannelsAlikeWhereverTheyLie) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const QuantSpec& given : all_specs()) {
    for (const std::int64_t inner : {1, 3, 40}) {
      QuantSpec spec = given;
      spec.axis = 1;
      const Shape shape = {7, 19, inner};
      std::vector<Range> ranges;
      for (int i = 0; i < 19; ++i) {
        const double span = std::exp(std::uniform_real_distribution<>(-9, 9)(random));
        ranges.push_back({-span * std::uniform_real_distribution<>(0, 1)(random), span});
      }
      const QuantParams params = choose_params(spec, ranges);
      Tensor real = Tensor::zeros(DType::Float32, shape);
      const auto values = real.mutable_data<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto high = static_cast<float>(ranges[i / static_cast<std::size_t>(inner) % 19].max);
        values[i] = high * std::uniform_real_distribution<float>(-2, 2)(random);
      }
      values[5] = kNan;
      const Tensor integers = quantize_tensor(real, params);
      EXPECT_EQ(dequantize_tensor(integers, params), fake_quantize(real, params));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t channel = i / static_cast<std::size_t>(inner) % 19;
        QuantParams own{spec, {params.scale[channel]}, {params.zero_point[channel]}};
        own.spec.axis = -1;
        const Tensor one = Tensor::of<float>({1}, {values[i]});
        EXPECT_EQ(to_float(quantize_tensor(one, own))[0], to_float(integers)[i]);
      }
    }
  }
}

TEST(Quantize, HandlesLargeTensorsOnThreads) {
  const std::int64_t size = (1 << 21) + 7;
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256) - 128.0f;
  const QuantParams params{{.bits = 8}, {1.0f}, {0}};
  const Tensor real = Tensor::of<float>({size}, std::span<const float>(values));
  EXPECT_EQ(fake_quantize(real, params), real);
}

TEST(Quantize, RefusesWhatDoesNotFit) {
  const Tensor real = Tensor::of<float>({2, 3}, {0, 0, 0, 0, 0, 0});
  const QuantParams two{{.axis = 1}, {1.0f, 1.0f}, {0, 0}};
  EXPECT_THROW(quantize_tensor(real, two), Error);
  const QuantParams far{{.axis = 2}, {1.0f}, {0}};
  EXPECT_THROW(fake_quantize(real, far), Error);
  EXPECT_THROW(dequantize_tensor(real, {{}, {1.0f}, {0}}), Error);
  const Tensor empty = Tensor::zeros(DType::Float32, {0, 3});
  EXPECT_EQ(fake_quantize(empty, {{}, {1.0f}, {0}}), empty);
}

}  // namespace
}  // namespace quench
