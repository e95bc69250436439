// SPDX-License-Identifier: Apache-2.0
// Products that are quantised as they come: what ONNX defines, whatever is joined behind the
// product.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quench/error.h"
#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor random_floats(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<float> numbers(0, 2);
  Tensor tensor = Tensor::zeros(DType::Float32, shape);
  for (float& each : tensor.mutable_data<float>()) each = numbers(random);
  return tensor;
}

std::vector<Dim> fixed(const Shape& shape) {
  std::vector<Dim> dims;
  for (const std::int64_t size : shape) dims.push_back({.value = size, .symbol = {}});
  return dims;
}

/// What stands between the input and the quantiser, or behind the product.
enum class Tail { Plain, Relu, Gelu, Residual, Norm, Number, Mask, MaskedSum };

struct Form {
  std::int64_t rows, depth, width;
  Tail tail;
};

/// x -> quantised -> product, bias, tail -> quantised again: bytes, scale and zero point.
Model model_of(const Form& form, std::mt19937& random) {
  Builder b;
  b.input("x", fixed({form.rows, form.depth})).input("r", fixed({form.rows, form.width}));
  b.input("m", fixed({form.rows, 1}));
  std::vector<std::int8_t> weights(static_cast<std::size_t>(form.depth * form.width));
  for (auto& each : weights) each = static_cast<std::int8_t>(random() % 255 - 127);
  b.constant("w", Tensor::of<std::int8_t>({form.depth, form.width}, weights));
  b.constant("scale", Tensor::of<float>({}, {0.004F}));
  b.constant("bias", random_floats({form.width}, random));
  b.node("DynamicQuantizeLinear", {"x"}, {"xb", "xs", "xz"});
  b.node("MatMulInteger", {"xb", "w", "xz"}, {"sums"});
  b.node("Cast", {"sums"}, {"cast"}).set("to", std::int64_t{1});
  b.node("Mul", {"xs", "scale"}, {"scales"});
  b.node("Mul", {"cast", "scales"}, {"real"});
  b.node("Add", {"real", "bias"}, {"biased"});
  std::string last = "biased";
  if (form.tail == Tail::Relu) b.node("Relu", {last}, {"t"}), last = "t";
  if (form.tail == Tail::Number) {
    b.number("number", 0.125F);
    b.node("Mul", {"number", last}, {"t"}), last = "t";
  }
  if (form.tail == Tail::Mask) b.node("Mul", {last, "m"}, {"t"}), last = "t";
  if (form.tail == Tail::MaskedSum) {
    b.node("Mul", {last, "m"}, {"masked"});
    b.node("Add", {"r", "masked"}, {"t"}), last = "t";
  }
  if (form.tail == Tail::Residual) b.node("Add", {last, "r"}, {"t"}), last = "t";
  if (form.tail == Tail::Gelu) {
    b.number("root", std::sqrt(2.0F)).number("one", 1).number("half", 0.5F);
    b.node("Div", {last, "root"}, {"g1"});
    b.node("Erf", {"g1"}, {"g2"});
    b.node("Add", {"g2", "one"}, {"g3"});
    b.node("Mul", {last, "g3"}, {"g4"});
    b.node("Mul", {"g4", "half"}, {"t"}), last = "t";
  }
  if (form.tail == Tail::Norm) {
    b.constant("gamma", random_floats({form.width}, random));
    b.constant("beta", random_floats({form.width}, random));
    b.node("LayerNormalization", {last, "gamma", "beta"}, {"t"}), last = "t";
  }
  b.constant("flat", Tensor::of<std::int64_t>({1}, {-1}));
  b.node("Reshape", {last, "flat"}, {"moved"});
  b.node("DynamicQuantizeLinear", {"moved"}, {"bytes", "step", "zero"});
  b.output(last).output("bytes").output("step").output("zero");
  return b.model;
}

void expect_near(const Tensor& got, const Tensor& wanted, float tolerance) {
  ASSERT_EQ(got.shape(), wanted.shape());
  const auto a = got.data<float>();
  const auto b = wanted.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << "element " << i;
    if (std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "element " << i;
  }
}

/// The bytes that ONNX's definition gives for exactly these numbers.
void expect_quantised(const TensorMap& results, const Tensor& real) {
  float low = 0;
  float high = 0;
  for (const float x : real.data<float>()) {
    if (x < low) low = x;
    if (x > high) high = x;
  }
  const float step = high == low ? 1.0F : (high - low) / 255.0F;
  const float zero = std::nearbyint(std::clamp(-low / step, 0.0F, 255.0F));
  ASSERT_EQ(results.at("step").data<float>()[0], step);
  ASSERT_EQ(results.at("zero").data<std::uint8_t>()[0], static_cast<std::uint8_t>(zero));
  const auto bytes = results.at("bytes").data<std::uint8_t>();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const float x = real.data<float>()[i];
    if (std::isnan(x)) continue;
    const float wanted = std::clamp(std::nearbyint(x / step) + zero, 0.0F, 255.0F);
    ASSERT_EQ(bytes[i], static_cast<std::uint8_t>(wanted)) << "element " << i << ": " << x;
  }
}

class Dynamic : public ::testing::TestWithParam<Tail> {};

TEST_P(Dynamic, EqualsTheDefinition) {
  std::mt19937 random(11);
  const auto up_to = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  for (int round = 0; round < 60; ++round) {
    const Form form{round == 0 ? 1 : up_to(90), up_to(200), up_to(300), GetParam()};
    SCOPED_TRACE(::testing::Message() << form.rows << " " << form.depth << " " << form.width);
    const Model model = model_of(form, random);
    TensorMap feeds = {{"x", random_floats({form.rows, form.depth}, random)},
                       {"r", random_floats({form.rows, form.width}, random)},
                       {"m", random_floats({form.rows, 1}, random)}};
    if (round % 10 == 9) feeds["r"].mutable_data<float>()[0] = kNaN;
    const std::string real = GetParam() == Tail::Plain ? "biased" : "t";
    Session plain(model, {.reference = true});
    const TensorMap wanted = plain.run(feeds);
    for (const int threads : {1, 2}) {
      Session fast(model, {}, Context{.threads = threads});
      const TensorMap got = fast.run(feeds);
      // Norms divide by small deviations, which makes differences larger.
      expect_near(got.at(real), wanted.at(real), GetParam() == Tail::Norm ? 1e-4F : 2e-6F);
      expect_quantised(got, got.at(real));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tails, Dynamic,
                         ::testing::Values(Tail::Plain, Tail::Relu, Tail::Gelu, Tail::Residual,
                                           Tail::Norm, Tail::Number, Tail::Mask, Tail::MaskedSum));

/// Numbers on the edge between two bytes: products with an inverse would fall on the wrong side.
TEST(DynamicQuantize, RoundsQuotientsAsTheyAre) {
  Builder b;
  b.input("x", {{.value = -1, .symbol = "N"}});
  b.node("DynamicQuantizeLinear", {"x"}, {"bytes", "step", "zero"});
  b.output("bytes").output("step").output("zero");
  Session session(b.model, {});
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const float high = std::ldexp(1.0F + static_cast<float>(random() % 1000000) / 1e6F,
                                  static_cast<int>(random() % 40) - 20);
    const float step = high / 255.0F;
    Tensor x = Tensor::zeros(DType::Float32, {257});
    const auto values = x.mutable_data<float>();
    for (std::size_t i = 0; i < 255; ++i) {
      const float half = (static_cast<float>(i) + 0.5F) * step;
      values[i] = std::nextafter(half, round % 3 == 0 ? 0.0F : round % 3 == 1 ? high : half);
    }
    values[256] = high;
    const TensorMap results = session.run({{"x", x}});
    SCOPED_TRACE(high);
    expect_quantised(results, x);
  }
}

/// Rows of a table of bytes, made real in one step.
template <typename T>
void expect_rows(DType dtype, bool has_zero) {
  std::mt19937 random(8);
  Builder b;
  b.input("ids", {{.value = -1, .symbol = "N"}, {.value = -1, .symbol = "S"}}, DType::Int64);
  constexpr std::int64_t kRows = 19;
  constexpr std::int64_t kColumns = 37;
  Tensor table = Tensor::zeros(dtype, {kRows, kColumns});
  Tensor zeros = Tensor::zeros(dtype, {kRows, 1});
  for (T& each : table.mutable_data<T>()) each = static_cast<T>(random());
  for (T& each : zeros.mutable_data<T>()) each = static_cast<T>(random());
  b.constant("table", table).constant("zeros", zeros);
  b.constant("scales", random_floats({kRows, 1}, random));
  b.node("Gather", {"table", "ids"}, {"a"});
  b.node("Cast", {"a"}, {"real"}).set("to", std::int64_t{1});
  std::string last = "real";
  if (has_zero) {
    b.node("Gather", {"zeros", "ids"}, {"b"});
    b.node("Cast", {"b"}, {"zero"}).set("to", std::int64_t{1});
    b.node("Sub", {"real", "zero"}, {"moved"}), last = "moved";
  }
  b.node("Gather", {"scales", "ids"}, {"scale"});
  b.node("Mul", {last, "scale"}, {"y"});
  b.output("y");
  Session plain(b.model, {.reference = true});
  Session fast(b.model, {}, Context{.threads = 2});
  for (const std::int64_t words : {0, 1, 7, 900}) {
    Tensor ids = Tensor::zeros(DType::Int64, {2, words});
    for (std::int64_t& each : ids.mutable_data<std::int64_t>()) {
      each = static_cast<std::int64_t>(random() % (2 * kRows)) - kRows;
    }
    ASSERT_EQ(fast.run({{"ids", ids}}).at("y"), plain.run({{"ids", ids}}).at("y"));
  }
  EXPECT_THROW(fast.run({{"ids", Tensor::of<std::int64_t>({1, 1}, {kRows})}}), Error);
}

TEST(GatherRows, EqualsOperatorsOneByOne) {
  expect_rows<std::int8_t>(DType::Int8, true);
  expect_rows<std::uint8_t>(DType::UInt8, true);
  expect_rows<std::int8_t>(DType::Int8, false);
}

TEST(LpNormalization, EqualsTheReference) {
  std::mt19937 random(9);
  for (const std::int64_t p : {1, 2}) {
    for (const std::int64_t columns : {1, 5, 32, 77}) {
      Builder b;
      b.input("x", fixed({3, columns}));
      b.node("LpNormalization", {"x"}, {"y"}).set("p", p);
      b.output("y");
      Tensor x = random_floats({3, columns}, random);
      for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
        x.mutable_data<float>()[i] = 0;
      }
      x.mutable_data<float>()[static_cast<std::size_t>(columns)] = kNaN;
      Session plain(b.model, {.reference = true});
      Session fast(b.model, {});
      expect_near(fast.run({{"x", x}}).at("y"), plain.run({{"x", x}}).at("y"), 1e-6F);
    }
  }
}

}  // namespace
}  // namespace quench
