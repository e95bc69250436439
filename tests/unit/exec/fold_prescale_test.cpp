// SPDX-License-Identifier: Apache-2.0
// Scales and shifts in front of a layer.
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

/// x [n,2,4,4] * 3 + 5 -> Conv; `change` may alter the Conv.
std::string around_conv(const std::function<void(Builder&, Node&)>& change, Builder& b,
                        const passes::PassOptions& options = {}) {
  b.input("x", dims({-1, 2, 4, 4}));
  b.number("three", 3).numbers("five", {2, 1, 1}, {5, 7}).numbers("w", {1, 2, 1, 1}, {1, 2});
  b.node("Mul", {"three", "x"}, {"m"});
  b.type("m", dims({-1, 2, 4, 4}));
  b.node("Add", {"m", "five"}, {"a"});
  change(b, b.node("Conv", {"a", "w"}, {"y"}));
  b.output("y");
  b.run({"fold_prescale"}, options);
  return b.text();
}

TEST(FoldPrescale, ConvWithoutPadding) {
  Builder b;
  EXPECT_EQ(around_conv([](Builder&, Node&) {}, b), "Conv(x,w,w_bias)->y");
  EXPECT_EQ(*b.graph().constant(b.id("w")), Tensor::of<float>({1, 2, 1, 1}, {3, 6}));
  EXPECT_EQ(*b.graph().constant(b.id("w_bias")), Tensor::of<float>({1}, {5 + 2 * 7}));
}

TEST(FoldPrescale, PaddingIsNotShifted) {
  const auto pad = [](Builder&, Node& conv) {
    conv.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  };
  Builder shifted;
  EXPECT_EQ(around_conv(pad, shifted), "Mul(three,x)->m Add(m,five)->a Conv(a,w)->y");
  Builder scaled;  // a scale alone may go
  scaled.input("x", dims({-1, 2, 4, 4})).numbers("k", {2, 1, 1}, {2, 3});
  scaled.numbers("w", {2, 1, 1, 1}, {10, 20});
  scaled.node("Mul", {"x", "k"}, {"m"});
  Node& conv = scaled.node("Conv", {"m", "w"}, {"y"});
  pad(scaled, conv);
  conv.set("group", std::int64_t{2});
  scaled.output("y");
  scaled.run({"fold_prescale"});
  EXPECT_EQ(scaled.text(), "Conv(x,w)->y");
  EXPECT_EQ(*scaled.graph().constant(scaled.id("w")), Tensor::of<float>({2, 1, 1, 1}, {20, 60}));
}

TEST(FoldPrescale, WhatOthersReadOrWantStays) {
  const auto nothing = [](Builder&, Node&) {};
  Builder kept;
  EXPECT_EQ(around_conv(nothing, kept, {.keep = {"m"}}), "Mul(three,x)->m Conv(m,w,w_bias)->y");
  Builder read;
  EXPECT_EQ(
      around_conv([](Builder& b, Node&) { b.node("Relu", {"a"}, {"z"}), b.output("z"); }, read),
      "Mul(three,x)->m Add(m,five)->a Conv(a,w)->y Relu(a)->z");
}

TEST(FoldPrescale, AConstantThatWidensItsInputStays) {
  Builder b;  // [n,1,4,4] * [2,1,1] has two channels, x has one
  b.input("x", dims({-1, 1, 4, 4})).numbers("k", {2, 1, 1}, {2, 3});
  b.numbers("w", {1, 2, 1, 1}, {1, 2});
  b.node("Mul", {"x", "k"}, {"m"});
  b.node("Conv", {"m", "w"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({"fold_prescale"}).changes, 0U);
}

TEST(FoldPrescale, GemmInBothLayouts) {
  for (const bool transposed : {false, true}) {
    Builder b;
    b.input("x", dims({-1, 2})).numbers("k", {2}, {2, 3});
    b.numbers("w", transposed ? Shape{1, 2} : Shape{2, 1}, {10, 20}).numbers("c", {1}, {4});
    b.node("Sub", {"x", "k"}, {"s"});
    Node& gemm = b.node("Gemm", {"s", "w", "c"}, {"y"});
    gemm.set("transB", std::int64_t{transposed});
    gemm.set("alpha", 0.5F);
    gemm.set("beta", 2.0F);
    b.output("y");
    b.run({"fold_prescale"});
    EXPECT_EQ(b.text(), "Gemm(x,w,w_bias)->y");
    EXPECT_EQ(*b.graph().constant(b.id("w_bias")), Tensor::of<float>({1}, {8 - 0.5F * 80}));
  }
}

}  // namespace
}  // namespace quench::testing
