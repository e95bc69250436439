// SPDX-License-Identifier: Apache-2.0
// Nodes with strange numbers: what ONNX says of them, or one sentence that names the node.
#include <gtest/gtest.h>

#include <cmath>

#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;
using testing::dims;

const Context kContext{.threads = 2};

Tensor ramp(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 23) / 5.0F - 2.0F;
  }
  return Tensor::of<float>(shape, values);
}

/// What a run of the node on open shapes is refused with.
std::string refusal(Builder& b, const Tensor& x) {
  try {
    Session session(b.model, {}, kContext);
    session.run({{"x", x}});
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    const std::string text = error.what();
    EXPECT_NE(text.find("tested"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(HostileNodes, AClipWithItsBoundsTheWrongWayRoundGivesTheGreatest) {
  for (const char* layer : {"", "Conv", "MatMul"}) {
    Builder b;
    b.input("x", dims({1, 4, 6, 6})).number("low", 3).number("high", -1);
    std::string value = "x";
    if (*layer != '\0') {
      b.constant("w", ramp(std::string(layer) == "Conv" ? Shape{5, 4, 1, 1} : Shape{6, 5}));
      b.node(layer, {"x", "w"}, {"c"});
      value = "c";
    }
    b.node("Clip", {value, "low", "high"}, {"y"});
    b.output("y");
    Session session(b.model, {}, kContext);
    for (const float each : to_float(session.run({{"x", ramp({1, 4, 6, 6})}}).at("y"))) {
      ASSERT_EQ(each, -1) << layer;
    }
  }
}

TEST(HostileNodes, ShapesThatDoNotFitAreNamed) {
  const Tensor x = ramp({1, 4, 8, 8});
  constexpr std::int64_t kLarge = std::int64_t{1} << 32;
  for (const std::int64_t size : {std::int64_t{3}, kLarge}) {
    Builder b;
    b.input("x", dims({-1, -1, -1, -1}));
    b.constant("s", Tensor::of<std::int64_t>({2}, {size, size == kLarge ? kLarge : -1}));
    b.node("Reshape", {"x", "s"}, {"y"}).name = "tested";
    b.output("y");
    EXPECT_NE(refusal(b, x).find("1x4x8x8"), std::string::npos);
  }
  for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
    Builder b;
    b.input("x", dims({-1, -1, -1, -1}));
    Node& node = b.node(op, {"x"}, {"y"});
    node.name = "tested";
    node.set("blocksize", std::int64_t{3});
    b.output("y");
    EXPECT_NE(refusal(b, x).find("blocks of 3x3"), std::string::npos);
  }
}

TEST(HostileNodes, WhatNoMachineCanHoldIsNamed) {
  Builder b;
  b.input("x", dims({-1, -1})).constant("s", Tensor::of<std::int64_t>({2}, {1 << 24, 1 << 22}));
  b.node("Tile", {"x", "s"}, {"y"}).name = "tested";
  b.output("y");
  EXPECT_NE(refusal(b, ramp({2, 2})).find("memory"), std::string::npos);
}

/// libtorch's own words, without its stack of calls.
TEST(HostileNodes, WhatALibraryRefusesIsOneSentence) {
  Builder b;
  b.input("x", dims({-1, -1})).constant("c", ramp({2, 3}));
  Node& node = b.node("Concat", {"x", "c"}, {"y"});
  node.name = "tested";
  node.set("axis", std::int64_t{0});
  b.output("y");
  const std::string text = refusal(b, ramp({2, 2}));
  EXPECT_NE(text.find("Concat"), std::string::npos) << text;
  EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
}

/// Before opset 14 five outputs meant training: the batch's own mean and variance.
TEST(HostileNodes, OldBatchNormalisationWithFiveOutputsTrains) {
  for (const bool behind_a_layer : {false, true}) {
    Builder b(8);
    b.input("x", dims({2, 1, 2, 2})).numbers("one", {1}, {1}).numbers("zero", {1}, {0});
    b.numbers("w", {1, 1, 1, 1}, {1});
    if (behind_a_layer) b.node("Conv", {"x", "w"}, {"c"});
    b.node("BatchNormalization", {behind_a_layer ? "c" : "x", "one", "zero", "zero", "one"},
           {"y", "mean", "variance", "saved_mean", "saved_variance"});
    b.output("y");
    if (!behind_a_layer) b.output("mean").output("saved_mean").output("saved_variance");
    Session session(b.model, {}, kContext);
    const TensorMap got =
        session.run({{"x", Tensor::of<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}});
    EXPECT_NEAR(to_float(got.at("y"))[0], -3.5 / std::sqrt(5.25), 1e-4);
    if (behind_a_layer) continue;
    EXPECT_NEAR(to_float(got.at("mean"))[0], 0.45, 1e-4);
    EXPECT_NEAR(to_float(got.at("saved_mean"))[0], 4.5, 1e-4);
    EXPECT_NEAR(to_float(got.at("saved_variance"))[0], 1 / std::sqrt(5.25), 1e-4);
  }
}

}  // namespace
}  // namespace quench
