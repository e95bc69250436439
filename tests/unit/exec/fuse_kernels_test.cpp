// SPDX-License-Identifier: Apache-2.0
// Layers joined with what follows them.
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

/// x [n,2,4,4] and a 1x1 convolution of it: y = conv(x).
void add_conv(Builder& b, const std::string& in, const std::string& out) {
  b.numbers(out + "_w", {2, 2, 1, 1}, {1, 2, 3, 4});
  b.node("Conv", {in, out + "_w"}, {out});
  b.type(out, dims({-1, 2, 4, 4}));
}

Builder start(std::int64_t opset = 13) {
  Builder b(opset);
  b.input("x", dims({-1, 2, 4, 4}));
  return b;
}

std::string fuse(Builder& b, const passes::PassOptions& options = {}) {
  if (b.graph().outputs.empty()) b.output("y");
  b.run({"fuse_kernels"}, options);
  return b.text();
}

struct Case {
  const char* op;
  const char* name;
  float alpha = 0;
  float beta = 0;
};

TEST(FuseKernels, Activations) {
  for (const Case& each :
       {Case{"Relu", "relu"}, Case{"LeakyRelu", "leaky_relu", 0.01F}, Case{"Sigmoid", "sigmoid"},
        Case{"HardSigmoid", "hard_sigmoid", 0.2F, 0.5F}, Case{"HardSwish", "hard_swish"},
        Case{"Gelu", "gelu"}, Case{"Tanh", "tanh"}}) {
    Builder b = start();
    add_conv(b, "x", "c");
    b.node(each.op, {"c"}, {"y"});
    EXPECT_EQ(fuse(b), "quench.exec.Conv(x,c_w)->y") << each.op;
    const Node& node = b.graph().nodes[0];
    EXPECT_EQ(node.get_string("activation", ""), each.name);
    EXPECT_EQ(node.get_float("activation_alpha", -1), each.alpha);
    EXPECT_EQ(node.get_float("activation_beta", -1), each.beta);
  }
}

TEST(FuseKernels, GeluTanhAndSwishKeepTheirForm) {
  Builder b = start();
  add_conv(b, "x", "c");
  b.node("Gelu", {"c"}, {"g"}).set("approximate", std::string("tanh"));
  add_conv(b, "g", "d");
  b.node("Swish", {"d"}, {"y"}).domain = "quench.exec";
  EXPECT_EQ(fuse(b), "quench.exec.Conv(x,c_w)->g quench.exec.Conv(g,d_w)->y");
  EXPECT_EQ(b.graph().nodes[0].get_string("activation", ""), "gelu_tanh");
  EXPECT_EQ(b.graph().nodes[1].get_string("activation", ""), "swish");
}

TEST(FuseKernels, ClipInBothForms) {
  Builder old = start(10);
  add_conv(old, "x", "c");
  Node& clip = old.node("Clip", {"c"}, {"y"});
  clip.set("min", 0.0F);
  clip.set("max", 6.0F);
  Builder now = start(11);
  add_conv(now, "x", "c");
  now.number("low", 0).number("high", 6);
  now.node("Clip", {"c", "low", "high"}, {"y"});
  for (Builder* b : {&old, &now}) {
    EXPECT_EQ(fuse(*b), "quench.exec.Conv(x,c_w)->y");
    EXPECT_EQ(b->graph().nodes[0].get_string("activation", ""), "clip");
    EXPECT_EQ(b->graph().nodes[0].get_float("activation_beta", 0), 6.0F);
  }
  Builder computed = start(11);
  add_conv(computed, "x", "c");
  computed.input("high", {});
  computed.node("Clip", {"c", "", "high"}, {"y"});
  EXPECT_EQ(fuse(computed), "Conv(x,c_w)->c Clip(c,_,high)->y");
}

TEST(FuseKernels, ResidualBeforeAndAfter) {
  Builder before = start();
  add_conv(before, "x", "c");
  before.node("Add", {"x", "c"}, {"s"});
  before.node("Relu", {"s"}, {"y"});
  EXPECT_EQ(fuse(before), "quench.exec.Conv(x,c_w,_,x)->y");
  EXPECT_EQ(before.graph().nodes[0].get_string("residual", ""), "before");
  EXPECT_EQ(before.graph().nodes[0].get_string("activation", ""), "relu");

  Builder after = start();
  add_conv(after, "x", "c");
  after.node("Relu", {"c"}, {"r"});
  after.type("r", dims({-1, 2, 4, 4}));
  after.node("Add", {"r", "x"}, {"y"});
  EXPECT_EQ(fuse(after), "quench.exec.Conv(x,c_w,_,x)->y");
  EXPECT_EQ(after.graph().nodes[0].get_string("residual", ""), "after");
}

TEST(FuseKernels, ResidualMadeAfterTheLayerMovesIt) {
  Builder b = start();
  add_conv(b, "x", "c");
  b.node("Tanh", {"x"}, {"z"});
  b.type("z", dims({-1, 2, 4, 4}));
  b.node("Add", {"c", "z"}, {"y"});
  EXPECT_EQ(fuse(b), "Tanh(x)->z quench.exec.Conv(x,c_w,_,z)->y");
}

TEST(FuseKernels, OfTwoLayersTheLaterTakesTheSum) {
  Builder b = start();
  add_conv(b, "x", "c");
  add_conv(b, "x", "d");
  b.node("Add", {"c", "d"}, {"y"});
  EXPECT_EQ(fuse(b), "Conv(x,c_w)->c quench.exec.Conv(x,d_w,_,c)->y");
}

TEST(FuseKernels, ResidualNeedsEqualTypes) {
  for (const auto& shape : {dims({-1, 2, 1, 1}), dims({1, 2, 4, 4}), dims({2, 4, 4})}) {
    Builder b = start();
    b.input("z", shape);
    add_conv(b, "x", "c");
    b.node("Add", {"c", "z"}, {"y"});
    EXPECT_EQ(fuse(b), "Conv(x,c_w)->c Add(c,z)->y");
  }
  Builder unknown = start();  // two unknown dimensions need not be equal
  unknown.input("z", {Dim{}, Dim{2, ""}});
  add_conv(unknown, "x", "c");
  unknown.type("c", {Dim{}, Dim{2, ""}});
  unknown.node("Add", {"c", "z"}, {"y"});
  EXPECT_EQ(fuse(unknown), "Conv(x,c_w)->c Add(c,z)->y");
  Builder twice = start();
  add_conv(twice, "x", "c");
  twice.node("Add", {"c", "c"}, {"y"});
  EXPECT_EQ(fuse(twice), "Conv(x,c_w)->c Add(c,c)->y");
}

TEST(FuseKernels, MatMulTakesItsBias) {
  Builder b;
  b.input("x", dims({-1, 5, 2}));
  b.numbers("w", {2, 3}, {1, 2, 3, 4, 5, 6}).numbers("bias", {3}, {7, 8, 9});
  b.node("MatMul", {"x", "w"}, {"m"});
  b.node("Add", {"bias", "m"}, {"a"});
  b.node("Relu", {"a"}, {"y"});
  EXPECT_EQ(fuse(b), "quench.exec.MatMul(x,w,w_bias)->y");
  EXPECT_EQ(*b.graph().constant(b.id("w_bias")), Tensor::of<float>({3}, {7, 8, 9}));
  Builder row;  // [1,3] fits only where the rank is known to be two or more
  row.input("x", dims({-1, 2}));
  row.numbers("w", {2, 3}, {1, 2, 3, 4, 5, 6}).numbers("bias", {1, 3}, {7, 8, 9});
  row.node("MatMul", {"x", "w"}, {"m"});
  row.node("Add", {"m", "bias"}, {"y"});
  row.output("y");
  Builder known = row;
  EXPECT_EQ(fuse(row), "MatMul(x,w)->m Add(m,bias)->y");
  known.type("m", dims({-1, 3}));
  EXPECT_EQ(fuse(known), "quench.exec.MatMul(x,w,w_bias)->y");
}

TEST(FuseKernels, GemmLosesAlphaAndBeta) {
  Builder b;
  b.input("x", dims({-1, 2}));
  b.numbers("w", {1, 2}, {1, 2}).numbers("c", {}, {6});
  Node& gemm = b.node("Gemm", {"x", "w", "c"}, {"g"});
  gemm.set("transB", std::int64_t{1});
  gemm.set("alpha", 0.5F);
  gemm.set("beta", 2.0F);
  b.node("Relu", {"g"}, {"y"});
  EXPECT_EQ(fuse(b), "quench.exec.Gemm(x,w_1,w_bias)->y");
  const Node& node = b.graph().nodes[0];
  EXPECT_EQ(node.find("alpha"), nullptr);
  EXPECT_EQ(node.find("beta"), nullptr);
  EXPECT_EQ(node.get_int("transB", 0), 1);
  EXPECT_EQ(*b.graph().constant(node.inputs[1]), Tensor::of<float>({1, 2}, {0.5F, 1}));
  EXPECT_EQ(*b.graph().constant(node.inputs[2]), Tensor::of<float>({1}, {12}));
}

TEST(FuseKernels, ConvTransposeTakesNoResidual) {
  Builder b = start();
  b.numbers("w", {2, 2, 1, 1}, {1, 2, 3, 4});
  b.node("ConvTranspose", {"x", "w"}, {"c"});
  b.type("c", dims({-1, 2, 4, 4}));
  b.node("Relu", {"c"}, {"r"});
  b.type("r", dims({-1, 2, 4, 4}));
  b.node("Add", {"r", "x"}, {"y"});
  EXPECT_EQ(fuse(b), "quench.exec.ConvTranspose(x,w)->r Add(r,x)->y");
}

TEST(FuseKernels, WhatOthersReadOrWantStays) {
  const auto relu = [](const std::function<void(Builder&)>& more,
                       const passes::PassOptions& options = {}) {
    Builder b = start();
    add_conv(b, "x", "c");
    b.node("Relu", {"c"}, {"y"});
    more(b);
    b.output("y");
    fuse(b, options);
    return b.graph().nodes[0].domain.empty();
  };
  EXPECT_FALSE(relu([](Builder&) {}));
  EXPECT_FALSE(relu([](Builder&) {}, {.keep = {"y", "x"}}));
  EXPECT_TRUE(relu([](Builder&) {}, {.keep = {"c"}}));
  EXPECT_TRUE(relu([](Builder& b) { b.output("c"); }));
  EXPECT_TRUE(relu([](Builder& b) { b.node("Tanh", {"c"}, {"t"}), b.output("t"); }));
  EXPECT_TRUE(relu([](Builder& b) { add_if_reading(b, "c", "t"), b.output("t"); }));
}

TEST(FuseKernels, AWeightThatIsComputedStays) {
  Builder b = start();
  b.input("w", dims({2, 2, 1, 1}));
  b.node("Conv", {"x", "w"}, {"c"});
  b.node("Relu", {"c"}, {"y"});
  EXPECT_EQ(fuse(b), "Conv(x,w)->c Relu(c)->y");
}

}  // namespace
}  // namespace quench::testing
