// SPDX-License-Identifier: Apache-2.0
// GPTQ and the linear algebra behind it, and the choice of bits.
#include "tune/gptq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tune/balance_inputs.h"
#include "tune/mixed_bits.h"

namespace quench::tune {
namespace {

Tensor noise(Shape shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 1);
  Tensor result = Tensor::zeros(DType::Float32, std::move(shape));
  for (float& value : result.mutable_data<float>()) value = normal(generator);
  return result;
}

/// Rows whose elements go together, as activations do: two hidden causes and a little noise.
Tensor correlated(std::int64_t rows, std::int64_t columns) {
  const Tensor causes = noise({rows, 2}, 5);
  const Tensor mix = noise({2, columns}, 6);
  Tensor result = noise({rows, columns}, 7);
  auto out = result.mutable_data<float>();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float& value = out[static_cast<std::size_t>(i * columns + j)];
      value *= 0.1F;
      for (std::int64_t k = 0; k < 2; ++k) {
        value += causes.data<float>()[static_cast<std::size_t>(i * 2 + k)] *
                 mix.data<float>()[static_cast<std::size_t>(k * columns + j)];
      }
    }
  }
  return result;
}

double product_error(const Tensor& x, const Tensor& a, const Tensor& b) {
  const std::int64_t inner = a.shape()[0];
  const std::int64_t outputs = a.shape()[1];
  double sum = 0;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    for (std::int64_t n = 0; n < outputs; ++n) {
      double error = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        const auto at = static_cast<std::size_t>(k * outputs + n);
        error += static_cast<double>(x.data<float>()[static_cast<std::size_t>(i * inner + k)]) *
                 static_cast<double>(a.data<float>()[at] - b.data<float>()[at]);
      }
      sum += error * error;
    }
  }
  return sum;
}

/// y = MatMul(x, w), and its one weight.
struct Product {
  Graph graph;
  plan::WeightSite site;

  explicit Product(const Tensor& weight) {
    Value x;
    x.name = "x";
    const ValueId in = graph.add_value(x);
    graph.inputs.push_back(in);
    const ValueId w = graph.add_constant("w", weight);
    graph.add_node("MatMul", {in, w}, {"y"});
    site = {.node = "y", .input = 1, .channel_axis = 1, .sum_axis = 0};
  }
};

TEST(Dense, FactorOfTheInverse) {
  constexpr std::int64_t kSize = 37;
  Square h(kSize);
  add_outer(h, correlated(200, kSize).data<float>(), 2);
  for (std::int64_t i = 0; i < kSize; ++i) h.row(i)[i] += 1;
  const Square original = h;
  ASSERT_TRUE(inverse_factor(h, 2));
  // (U^T U) H must be the identity.
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < kSize; ++k) {
        double inverse = 0;
        for (std::int64_t m = 0; m <= std::min(i, k); ++m) inverse += h.row(m)[i] * h.row(m)[k];
        sum += inverse * original.row(std::min(k, j))[std::max(k, j)];
      }
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-6);
    }
  }
}

TEST(Dense, RefusesWhatIsNotPositive) {
  Square h(3);
  h.row(0)[0] = 1;
  h.row(1)[1] = -1;
  h.row(2)[2] = 1;
  EXPECT_FALSE(inverse_factor(h, 1));
}

TEST(Gptq, LowersTheErrorOfTheOutput) {
  const Tensor weight = noise({64, 24}, 1);
  const Tensor x = correlated(400, 64);
  const Product net(weight);
  for (const auto& [bits, block] : {std::pair{4, 0}, {3, 0}, {2, 0}, {4, 32}, {1, 0}}) {
    const quant::WeightSpec spec{
        .bits = bits, .axis = block > 0 ? 0 : 1, .block = block, .least_error = true};
    InputMoments moments(gptq_layer(net.graph, net.site));
    moments.add(net.graph, x, 2);
    const quant::QuantWeight base = quant::quantize_weight(weight, spec, 1);
    const auto better = gptq(weight, base, moments, 2);
    ASSERT_TRUE(better) << bits;
    EXPECT_EQ(better->scale, base.scale);
    const double before = product_error(x, weight, quant::dequantize_weight(base, 1));
    const double after = product_error(x, weight, quant::dequantize_weight(*better, 1));
    EXPECT_LT(after, 0.6 * before) << bits;
  }
}

TEST(Gptq, KeepsWhatIsGoodAlready) {
  const Tensor x = correlated(100, 32);
  const quant::WeightSpec spec{.bits = 4, .symmetric = true, .axis = 1};
  const Tensor exact =
      quant::dequantize_weight(quant::quantize_weight(noise({32, 8}, 2), spec, 1), 1);
  const Product net(exact);
  InputMoments moments(gptq_layer(net.graph, net.site));
  moments.add(net.graph, x, 1);
  EXPECT_FALSE(gptq(exact, quant::quantize_weight(exact, spec, 1), moments, 1));
}

TEST(Gptq, DeadInputsDoNoHarm) {
  const Tensor weight = noise({16, 4}, 3);
  const Product net(weight);
  InputMoments moments(gptq_layer(net.graph, net.site));
  moments.add(net.graph, Tensor::zeros(DType::Float32, {5, 16}), 1);
  const quant::WeightSpec spec{.bits = 3, .axis = 1};
  EXPECT_FALSE(gptq(weight, quant::quantize_weight(weight, spec, 1), moments, 1));
}

TEST(MixedBits, ErrorsAreMetWithTheFewestBits) {
  const Tensor weight = noise({64, 64}, 4);
  const quant::WeightSpec wanted{.bits = 0, .axis = 0, .least_error = true};
  const WidthErrors widths = measure_widths(weight, wanted, 1);
  int before = 2;
  for (const double target : {0.6, 0.2, 0.1, 0.02, 0.005, 0.0001}) {
    const int bits = widths.fewest(target);
    EXPECT_GE(bits, before);
    before = bits;
    const auto made = quant::quantize_weight(weight, with_bits(wanted, bits), 1);
    EXPECT_LE(made.relative_error(), target);
  }
  EXPECT_EQ(widths.fewest(0.0), 16);
}

TEST(MixedBits, StepMeetsItsErrorClosely) {
  const Tensor weight = noise({64, 64}, 4);
  for (const double target : {0.02, 0.05, 0.2}) {
    const quant::WeightSpec spec = coarsest_step(weight, {.axis = 0}, target, target, 1);
    const double error = quant::quantize_weight(weight, spec, 1).relative_error();
    EXPECT_LE(error, target);
    EXPECT_GT(error, 0.9 * target);
    EXPECT_EQ(spec.bits, 8);
  }
}

TEST(MixedBits, ErrorIsHadAtOnceInAsManyBitsAsItNeeds) {
  const Tensor weight = noise({64, 64}, 4);
  for (const double target : {0.0005, 0.02, 0.1}) {
    const quant::WeightSpec spec = with_error(weight, {.axis = 0}, target, 1);
    EXPECT_NEAR(quant::quantize_weight(weight, spec, 1).relative_error(), target, 0.1 * target);
    EXPECT_EQ(spec.bits, target < 0.01 ? 16 : 8);
  }
}

TEST(MixedBits, AssumedSensitivitiesSpareSmallWeights) {
  std::vector<ErrorShare> shares = {{.elements = 1600}, {.elements = 100000}, {.elements = 25000}};
  assume_sensitivities(shares);
  const std::vector<double> errors = share_out(shares, 1e-4);
  EXPECT_NEAR(errors[1], 0.01, 1e-9);
  EXPECT_NEAR(errors[0], 0.0025, 1e-9);
  EXPECT_NEAR(errors[2], 0.005, 1e-9);
}

TEST(MixedBits, FixedWidthIsThatOfNormalWeights) {
  const Tensor weight = noise({16, 2048}, 9);
  const double width = fixed_width(0.02);
  EXPECT_LT(width, 7);
  const auto error = [&](int bits) {
    return quant::quantize_weight(weight, {.bits = bits, .axis = 0}, 1).relative_error();
  };
  EXPECT_LT(error(7), 0.02);
  EXPECT_GT(error(6), 0.02);
  EXPECT_DOUBLE_EQ(fixed_width(0.999), 2);
  EXPECT_DOUBLE_EQ(fixed_width(1e-9), 16);
}

TEST(MixedBits, SensitiveWeightsGetLessError) {
  const std::vector<ErrorShare> shares = {{.elements = 1000, .sensitivity = 1},
                                          {.elements = 1000, .sensitivity = 100},
                                          {.elements = 100000, .sensitivity = 1}};
  const std::vector<double> errors = share_out(shares, 1e-6);
  EXPECT_NEAR(errors[0] / errors[1], 10, 1e-6);
  EXPECT_NEAR(errors[2] / errors[0], 10, 1e-6);
}

TEST(BalanceInputs, HalvesTheErrorOfOneGridAndKeepsTheProduct) {
  Tensor weight = noise({64, 32}, 5);
  const auto values = weight.mutable_data<float>();
  for (std::size_t i = 0; i < 3 * 32; ++i) values[i] *= 20;
  const std::vector<std::vector<double>> ranges = {row_ranges(weight)};
  const std::vector<float> factors = balance_inputs(ranges);
  ASSERT_EQ(factors.size(), 64U);
  const Tensor divided = divide_rows(weight, factors);
  const quant::WeightSpec spec{.bits = 8, .symmetric = true};
  const Tensor before = quant::dequantize_weight(quant::quantize_weight(weight, spec, 1), 1);
  const Tensor after = quant::dequantize_weight(quant::quantize_weight(divided, spec, 1), 1);
  double plain = 0;
  double balanced = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(divided.data<float>()[i] * factors[i / 32], values[i], 1e-5F * std::abs(values[i]));
    plain += std::pow(before.data<float>()[i] - values[i], 2);
    balanced += std::pow(after.data<float>()[i] * factors[i / 32] - values[i], 2);
  }
  EXPECT_LT(balanced, 0.25 * plain);
}

TEST(BalanceInputs, LeavesRowsOfLikeRangesAndZerosAlone) {
  const std::vector<std::vector<double>> like = {row_ranges(noise({64, 32}, 5))};
  EXPECT_TRUE(balance_inputs(like).empty());
  const std::vector<std::vector<double>> zeros = {
      row_ranges(Tensor::zeros(DType::Float32, {4, 4}))};
  EXPECT_TRUE(balance_inputs(zeros).empty());
  EXPECT_TRUE(balance_inputs({}).empty());
}

}  // namespace
}  // namespace quench::tune
