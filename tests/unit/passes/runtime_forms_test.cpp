// SPDX-License-Identifier: Apache-2.0
// Equivalent forms that runtimes do better with, and near misses.
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

/// x [3,4] -> MatMul -> Add(bias) -> y.
std::string joined(Shape bias_shape, std::vector<float> bias, bool product_is_output = false) {
  Builder b(13);
  b.input("x", dims({3, 4})).numbers("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  b.numbers("bias", std::move(bias_shape), std::move(bias));
  b.node("MatMul", {"x", "w"}, {"p"}).name = "product";
  b.node("Add", {"bias", "p"}, {"y"});
  b.output("y");
  if (product_is_output) b.output("p");
  infer_types(b.model);
  b.run({"matmul_to_gemm"});
  return b.text();
}

TEST(MatmulToGemm, TakesABiasOfOneNumberAColumn) {
  EXPECT_EQ(joined({2}, {1, 2}), "Gemm(x,w,bias)->y");
  EXPECT_EQ(joined({1, 2}, {1, 2}), "Gemm(x,w,bias)->y");
  EXPECT_EQ(joined({}, {1}), "Gemm(x,w,bias)->y");
}

TEST(MatmulToGemm, LeavesWhatIsNoBias) {
  const std::string same = "MatMul(x,w)->p Add(bias,p)->y";
  EXPECT_EQ(joined({3, 1}, {1, 2, 3}), same) << "one number a row";
  EXPECT_EQ(joined({1, 1, 2}, {1, 2}), same) << "the sum has another rank";
  EXPECT_EQ(joined({2}, {1, 2}, true), same) << "the product is asked for";
}

TEST(MatmulToGemm, LeavesHigherRanks) {
  Builder b(13);
  b.input("x", dims({2, 3, 4})).numbers("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  b.numbers("bias", {2}, {1, 2});
  b.node("MatMul", {"x", "w"}, {"p"});
  b.node("Add", {"p", "bias"}, {"y"});
  b.output("y");
  infer_types(b.model);
  b.run({"matmul_to_gemm"});
  EXPECT_EQ(b.text(), "MatMul(x,w)->p Add(p,bias)->y");
}

struct Gates : Builder {
  Gates() : Builder(13) {
    input("x", dims({-1, 8}));
    number("zero", 0).number("three", 3).number("six", 6).number("sixth", 1.0F / 6);
  }
  std::string joined() {
    output("y");
    run({"join_hard_gates"});
    return text();
  }
  void clip() {
    node("Add", {"x", "three"}, {"a"});
    node("Clip", {"a", "zero", "six"}, {"c"});
  }
};

TEST(JoinHardGates, HardSwishInItsForms) {
  Gates by_clip;
  by_clip.clip();
  by_clip.node("Mul", {"x", "c"}, {"m"});
  by_clip.node("Div", {"m", "six"}, {"y"});
  EXPECT_EQ(by_clip.joined(), "HardSigmoid(x)->c_gate Mul(x,c_gate)->y")
      << "a sixth of what 'c' was: another value, another name";

  Gates scaled_first;
  scaled_first.clip();
  scaled_first.node("Mul", {"c", "sixth"}, {"m"});
  scaled_first.node("Mul", {"m", "x"}, {"y"});
  EXPECT_EQ(scaled_first.joined(), "HardSigmoid(x)->m Mul(m,x)->y");
}

TEST(JoinHardGates, HardSigmoidByClip) {
  Gates gate;
  gate.clip();
  gate.node("Div", {"c", "six"}, {"y"});
  EXPECT_EQ(gate.joined(), "HardSigmoid(x)->y");
  EXPECT_FLOAT_EQ(gate.graph().nodes[0].get_float("alpha", 0), 1.0F / 6);
  EXPECT_FLOAT_EQ(gate.graph().nodes[0].get_float("beta", 0), 0.5F);
}

TEST(JoinHardGates, NearMissesStay) {
  Gates other;
  other.number("five", 5);
  other.clip();
  other.node("Div", {"c", "five"}, {"y"});
  EXPECT_EQ(other.joined(), "Add(x,three)->a Clip(a,zero,six)->c Div(c,five)->y");
  Gates asked;
  asked.clip();
  asked.node("Div", {"c", "six"}, {"y"});
  asked.output("c");
  EXPECT_EQ(asked.joined(), "Add(x,three)->a Clip(a,zero,six)->c Div(c,six)->y");
}

}  // namespace
}  // namespace quench::testing
