// SPDX-License-Identifier: Apache-2.0
// Sessions of 8-bit models: where integers are not multiplied, which types go in and out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;
using testing::dims;

/// Bytes -> DQ -> Conv 'first' -> Relu -> Q -> bytes.
Builder layer(std::uint8_t weight_zero = 128) {
  Builder b;
  b.input("x", dims({1, 4, 5, 5}), DType::UInt8);
  b.number("s", 0.1F).number("ws", 0.02F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  std::vector<std::uint8_t> bytes(3 * 4 * 3 * 3);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(37 * i);
  b.constant("w", Tensor::of<std::uint8_t>({3, 4, 3, 3}, bytes));
  b.constant("wz", Tensor::of<std::uint8_t>({}, {weight_zero}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"});
  b.node("Conv", {"xr", "wr"}, {"c"}).name = "first";
  b.node("Relu", {"c"}, {"r"});
  b.node("QuantizeLinear", {"r", "s", "z"}, {"y"});
  b.output("y");
  return b;
}

Tensor bytes_in(const Shape& shape, unsigned factor) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*num_elements(shape)));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(factor * i);
  return Tensor::of<std::uint8_t>(shape, bytes);
}

struct Outcome {
  std::vector<std::uint8_t> bytes;
  std::vector<std::string> warnings;
  std::set<std::string> steps;
};

Outcome run(const Builder& b, SessionOptions options) {
  Outcome outcome;
  Context context{.threads = 2};
  context.log = [&](LogLevel level, std::string_view line) {
    if (level == LogLevel::Warning) outcome.warnings.emplace_back(line);
  };
  options.on_step = [&](const StepTime& step) { outcome.steps.insert(std::string(step.op_type)); };
  Session session(b.model, options, context);
  const Tensor y = session.run({{"x", bytes_in({1, 4, 5, 5}, 29)}}).at("y");
  outcome.bytes.assign(y.data<std::uint8_t>().begin(), y.data<std::uint8_t>().end());
  return outcome;
}

TEST(IntegerSession, WarnsOfLayersThatRunInFloat) {
  const Outcome fast = run(layer(), {});
  const Outcome slow = run(layer(), {.byte_products = ByteProducts::None});
  ASSERT_EQ(slow.warnings.size(), 1U);
  EXPECT_NE(slow.warnings[0].find("first"), std::string::npos) << slow.warnings[0];
  EXPECT_NE(slow.warnings[0].find("VNNI"), std::string::npos) << slow.warnings[0];
  EXPECT_EQ(slow.steps.count("QLinearConv"), 0U);
  // Either way the numbers are those of the definition.
  EXPECT_EQ(slow.bytes, fast.bytes);
}

TEST(IntegerSession, IsSilentWhereItWasAskedForTheSimulation) {
  const Outcome slow = run(layer(), {.integer = false, .byte_products = ByteProducts::None});
  EXPECT_TRUE(slow.warnings.empty()) << slow.warnings[0];
}

TEST(IntegerSession, RunsWeightsWithAZeroPointOfTheirOwn) {
  const Outcome fast = run(layer(101), {});
  const Outcome slow = run(layer(101), {.reference = true});
  EXPECT_EQ(fast.bytes, slow.bytes);
}

TEST(IntegerSession, AveragesBytesIntoFloats) {
  Builder b;
  b.input("x", dims({1, 4, 5, 5}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"real"});
  b.node("GlobalAveragePool", {"real"}, {"y"});
  b.output("y");
  const Tensor x = bytes_in({1, 4, 5, 5}, 29);
  std::set<std::string> steps;
  SessionOptions options;
  options.on_step = [&](const StepTime& step) { steps.insert(std::string(step.op_type)); };
  Session session(b.model, options, Context{.threads = 2});
  const Tensor y = session.run({{"x", x}}).at("y");
  EXPECT_EQ(steps, std::set<std::string>{"QLinearGlobalAveragePool"});
  ASSERT_EQ(y.shape(), (Shape{1, 4, 1, 1}));
  for (std::size_t c = 0; c < 4; ++c) {
    double sum = 0;
    for (std::size_t i = 0; i < 25; ++i) sum += x.data<std::uint8_t>()[25 * c + i] - 7;
    EXPECT_FLOAT_EQ(y.data<float>()[c], static_cast<float>(sum / 25 * 0.1));
  }
}

/// Bytes [5, 7] -> QGemm with weights for each column and a bias -> bytes, or floats.
Builder gemm(bool transposed, float alpha, bool to_bytes) {
  Builder b;
  b.model.opsets["com.microsoft"] = 1;
  b.input("x", dims({5, 7}), DType::UInt8).number("s", 0.1F);
  b.constant("z", Tensor::of<std::uint8_t>({}, {7}));
  std::vector<std::int8_t> bytes(21);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::int8_t>(37 * i);
  b.constant("w", Tensor::of<std::int8_t>(transposed ? Shape{3, 7} : Shape{7, 3}, bytes));
  b.numbers("ws", {3}, {0.02F, 0.03F, 0.01F}).constant("wz", Tensor::zeros(DType::Int8, {3}));
  b.constant("c", Tensor::of<std::int32_t>({3}, {500, -700, 20}));
  b.number("ys", 0.6F);
  std::vector<std::string> inputs = {"x", "s", "z", "w", "ws", "wz", "c"};
  if (to_bytes) inputs.insert(inputs.end(), {"ys", "z"});
  Node& node = b.node("QGemm", inputs, {"y"});
  node.domain = "com.microsoft";
  node.set("transB", std::int64_t{transposed ? 1 : 0});
  node.set("alpha", alpha);
  b.output("y");
  return b;
}

TEST(IntegerSession, MultipliesAsOnnxRuntimesQGemm) {
  const Tensor x = bytes_in({5, 7}, 29);
  for (const bool transposed : {false, true}) {
    for (const float alpha : {1.0F, 0.5F}) {
      for (const bool reference : {false, true}) {
        Builder floats = gemm(transposed, alpha, false);
        const Tensor w = *floats.graph().constant(floats.id("w"));
        Session real(floats.model, {.reference = reference});
        const Tensor y = real.run({{"x", x}}).at("y");
        Session byte(gemm(transposed, alpha, true).model, {.reference = reference});
        const Tensor q = byte.run({{"x", x}}).at("y");
        ASSERT_EQ(y.shape(), (Shape{5, 3}));
        for (std::size_t i = 0; i < 15; ++i) {
          const std::size_t column = i % 3;
          std::int64_t sum = std::array{500, -700, 20}[column];
          for (std::size_t k = 0; k < 7; ++k) {
            sum += (x.data<std::uint8_t>()[i / 3 * 7 + k] - 7) *
                   w.data<std::int8_t>()[transposed ? column * 7 + k : k * 3 + column];
          }
          const double scale = std::array{0.02, 0.03, 0.01}[column] * 0.1 * alpha;
          const double wanted = static_cast<double>(sum) * scale;
          EXPECT_NEAR(y.data<float>()[i], wanted, 1e-4 * std::abs(wanted) + 1e-5);
          const double step = std::clamp(std::nearbyint(wanted / 0.6) + 7, 0.0, 255.0);
          EXPECT_EQ(q.data<std::uint8_t>()[i], static_cast<std::uint8_t>(step));
        }
      }
    }
  }
}

TEST(IntegerSession, RoundsToUnsigned16Bits) {
  Builder b(21);
  b.input("x", dims({6})).number("s", 0.5F).constant("z", Tensor::of<std::uint16_t>({}, {40000}));
  b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  b.node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  b.output("q").output("y");
  Session session(b.model);
  const TensorMap out =
      session.run({{"x", Tensor::of<float>({6}, {0, 0.25F, 0.75F, -1, 1e6F, -1e6F})}});
  EXPECT_EQ(out.at("q"), Tensor::of<std::uint16_t>({6}, {40000, 40000, 40002, 39998, 65535, 0}));
  EXPECT_EQ(out.at("y"), Tensor::of<float>({6}, {0, 0, 1, -1, 12767.5F, -20000}));
}

}  // namespace
}  // namespace quench
