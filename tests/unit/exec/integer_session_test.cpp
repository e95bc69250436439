// SPDX-License-Identifier: Apache-2.0
// Sessions of 8-bit models: where integers are not multiplied, which types go in and out.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace quench
