// SPDX-License-Identifier: Apache-2.0
// Patterns that exporters write out, and near misses.
#include <cmath>

#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

using Add = std::function<void(Builder&)>;

/// x [n,8] -> (pattern) -> y, after fuse_patterns.
std::string fused(const Add& add, const passes::PassOptions& options = {},
                  std::int64_t opset = 13) {
  Builder b(opset);
  b.input("x", dims({-1, 8}));
  add(b);
  b.output("y");
  b.run({"fuse_patterns"}, options);
  return b.text();
}

/// Constants of the patterns below, by the name they have there.
void add_numbers(Builder& b) {
  b.number("half", 0.5F).number("one", 1).number("two", 2).number("three", 3).number("six", 6);
  b.number("zero", 0).number("sqrt2", std::sqrt(2.0F)).number("rsqrt2", std::sqrt(0.5F));
  b.number("c", 0.044715F).number("k", 0.7978845608F);
}

void add_erf(Builder& b, bool divide) {
  add_numbers(b);
  divide ? b.node("Div", {"x", "sqrt2"}, {"u"}) : b.node("Mul", {"rsqrt2", "x"}, {"u"});
  b.node("Erf", {"u"}, {"e"});
  b.node("Add", {"e", "one"}, {"s"});
}

TEST(FusePatterns, GeluInEveryOrder) {
  EXPECT_EQ(fused([](Builder& b) {
              add_erf(b, true);
              b.node("Mul", {"x", "s"}, {"m"});
              b.node("Mul", {"m", "half"}, {"y"});
            }),
            "quench.exec.Gelu(x)->y");
  EXPECT_EQ(fused([](Builder& b) {
              add_erf(b, false);
              b.node("Mul", {"half", "x"}, {"m"});
              b.node("Mul", {"m", "s"}, {"y"});
            }),
            "quench.exec.Gelu(x)->y");
  EXPECT_EQ(fused([](Builder& b) {
              add_erf(b, true);
              b.node("Div", {"s", "two"}, {"m"});
              b.node("Mul", {"x", "m"}, {"y"});
            }),
            "quench.exec.Gelu(x)->y");
}

TEST(FusePatterns, GeluTanh) {
  for (const bool power : {false, true}) {
    Builder b;
    b.input("x", dims({-1, 8}));
    add_numbers(b);
    if (power) {
      b.node("Pow", {"x", "three"}, {"x3"});
    } else {
      b.node("Mul", {"x", "x"}, {"x2"});
      b.node("Mul", {"x2", "x"}, {"x3"});
    }
    b.node("Mul", {"c", "x3"}, {"t"});
    b.node("Add", {"x", "t"}, {"a"});
    b.node("Mul", {"a", "k"}, {"u"});
    b.node("Tanh", {"u"}, {"h"});
    b.node("Add", {"one", "h"}, {"s"});
    b.node("Mul", {"x", "s"}, {"m"});
    b.node("Mul", {"half", "m"}, {"y"});
    b.output("y");
    b.run({"fuse_patterns"});
    EXPECT_EQ(b.text(), "quench.exec.Gelu(x)->y") << power;
    EXPECT_EQ(b.graph().nodes[0].get_string("approximate", ""), "tanh");
  }
}

TEST(FusePatterns, GeluWithOtherNumbersStays) {
  EXPECT_NE(fused([](Builder& b) {
              add_erf(b, true);
              b.node("Mul", {"x", "s"}, {"y"});  // twice a Gelu
            }),
            "quench.exec.Gelu(x)->y");
  EXPECT_NE(fused([](Builder& b) {
              add_numbers(b);
              b.node("Erf", {"x"}, {"e"});  // the root of two is missing
              b.node("Add", {"e", "one"}, {"s"});
              b.node("Mul", {"x", "s"}, {"m"});
              b.node("Mul", {"m", "half"}, {"y"});
            }),
            "quench.exec.Gelu(x)->y");
}

/// Paddle's form: Add 3, Clip 0..6, Mul x, Div 6.
void add_hard_swish(Builder& b, std::int64_t opset = 13, float top = 6) {
  add_numbers(b);
  b.number("top", top);
  b.node("Add", {"x", "three"}, {"a"});
  if (opset < 11) {
    Node& clip = b.node("Clip", {"a"}, {"g"});
    clip.set("min", 0.0F);
    clip.set("max", top);
  } else {
    b.node("Clip", {"a", "zero", "top"}, {"g"});
  }
  b.node("Mul", {"x", "g"}, {"m"});
  b.node("Div", {"m", "six"}, {"y"});
}

TEST(FusePatterns, HardSwish) {
  EXPECT_EQ(fused([](Builder& b) { add_hard_swish(b); }), "quench.exec.HardSwish(x)->y");
  EXPECT_EQ(fused([](Builder& b) { add_hard_swish(b, 9); }, {}, 9), "quench.exec.HardSwish(x)->y");
  EXPECT_NE(fused([](Builder& b) { add_hard_swish(b, 13, 5); }), "quench.exec.HardSwish(x)->y");
  EXPECT_NE(fused([](Builder& b) { add_hard_swish(b); }, {.keep = {"g"}}),
            "quench.exec.HardSwish(x)->y");
  EXPECT_NE(fused([](Builder& b) { add_hard_swish(b), b.output("m"); }),
            "quench.exec.HardSwish(x)->y");
  EXPECT_NE(
      fused([](Builder& b) { add_hard_swish(b), add_if_reading(b, "a", "z"), b.output("z"); }),
      "quench.exec.HardSwish(x)->y If(z_cond)->z");
}

TEST(FusePatterns, GateTimesItsInput) {
  const auto gate = [](const std::string& op, float alpha) {
    return [=](Builder& b) {
      Node& node = b.node(op, {"x"}, {"g"});
      if (op == "HardSigmoid") node.set("alpha", alpha);
      b.node("Mul", {"g", "x"}, {"y"});
    };
  };
  EXPECT_EQ(fused(gate("Sigmoid", 0)), "quench.exec.Swish(x)->y");
  EXPECT_EQ(fused(gate("HardSigmoid", 1.0F / 6)), "quench.exec.HardSwish(x)->y");
  EXPECT_EQ(fused(gate("HardSigmoid", 0.2F)), "HardSigmoid(x)->g Mul(g,x)->y");
  EXPECT_EQ(fused([](Builder& b) {  // a gate computed from something else
              b.node("Relu", {"x"}, {"r"});
              b.node("Sigmoid", {"r"}, {"g"});
              b.node("Mul", {"x", "g"}, {"y"});
            }),
            "Relu(x)->r Sigmoid(r)->g Mul(x,g)->y");
  EXPECT_EQ(fused([](Builder& b) {
              b.node("Sigmoid", {"x"}, {"g"});
              b.node("Div", {"x", "g"}, {"y"});
            }),
            "Sigmoid(x)->g Div(x,g)->y");
}

TEST(FusePatterns, ClipFromZeroIsRelu) {
  EXPECT_EQ(fused([](Builder& b) {
              b.number("zero", 0), b.node("Clip", {"x", "zero"}, {"y"});
            }),
            "Relu(x)->y");
  EXPECT_EQ(fused([](Builder& b) { b.node("Clip", {"x"}, {"y"}).set("min", 0.0F); }, {}, 6),
            "Relu(x)->y");
  EXPECT_EQ(fused([](Builder& b) {
              b.number("two", 2), b.node("Clip", {"x", "", "two"}, {"y"});
            }),
            "Clip(x,_,two)->y");
}

struct NormForm {
  bool power = false;
  bool reciprocal = false;
  bool two_subs = false;
  bool bias = true;
  std::int64_t axis = -1;
  std::int64_t channels = 8;
};

void add_layer_norm(Builder& b, const NormForm& form) {
  add_numbers(b);
  b.number("eps", 1e-6F);
  const auto count = static_cast<std::size_t>(form.channels);
  b.numbers("gamma", {form.channels}, std::vector<float>(count, 2));
  b.numbers("beta", {form.channels}, std::vector<float>(count, 1));
  const std::vector<std::int64_t> axes = {form.axis};
  b.node("ReduceMean", {"x"}, {"mean"}).set("axes", axes);
  b.node("Sub", {"x", "mean"}, {"d"});
  if (form.two_subs) b.node("Sub", {"x", "mean"}, {"d2"});
  const std::string d2 = form.two_subs ? "d2" : "d";
  form.power ? b.node("Pow", {d2, "two"}, {"sq"}) : b.node("Mul", {d2, d2}, {"sq"});
  b.type("sq", dims({-1, 8}));
  b.node("ReduceMean", {"sq"}, {"var"}).set("axes", axes);
  b.node("Add", {"var", "eps"}, {"ve"});
  b.node("Sqrt", {"ve"}, {"dev"});
  if (form.reciprocal) {
    b.node("Reciprocal", {"dev"}, {"r"});
    b.node("Mul", {"d", "r"}, {"norm"});
  } else {
    b.node("Div", {"d", "dev"}, {"norm"});
  }
  b.node("Mul", {"norm", "gamma"}, {form.bias ? "scaled" : "y"});
  if (form.bias) b.node("Add", {"scaled", "beta"}, {"y"});
}

TEST(FusePatterns, LayerNorm) {
  const auto run = [](const NormForm& form, const passes::PassOptions& options = {}) {
    return fused([&](Builder& b) { add_layer_norm(b, form); }, options);
  };
  const std::string whole = "quench.exec.LayerNormalization(x,gamma,beta)->y";
  EXPECT_EQ(run({}), whole);
  EXPECT_EQ(run({.power = true, .axis = 1}), whole);
  EXPECT_EQ(run({.reciprocal = true}), whole);
  EXPECT_EQ(run({.two_subs = true}), whole);
  EXPECT_EQ(run({.bias = false}), "quench.exec.LayerNormalization(x,gamma)->y");
  EXPECT_EQ(run({}, {.keep = {"scaled"}}),
            "quench.exec.LayerNormalization(x,gamma)->scaled Add(scaled,beta)->y");
  EXPECT_NE(run({}, {.keep = {"d"}}), whole);
  EXPECT_NE(run({}, {.keep = {"mean"}}), whole);
  EXPECT_NE(run({.axis = 0}), whole);
  EXPECT_NE(run({.channels = 1}), whole);  // would not be one number a channel
}

/// Scores / 8 + mask -> Softmax.
std::string attention(std::int64_t axis, const std::vector<Dim>& mask) {
  return fused([&](Builder& b) {
    b.input("q", dims({2, 4, 3, 5})).input("m", mask).number("eight", 8);
    b.node("Div", {"q", "eight"}, {"d"});
    b.node("Add", {"d", "m"}, {"a"});
    b.node("Softmax", {"a"}, {"y"}).set("axis", axis);
    b.type("d", dims({2, 4, 3, 5})).type("a", dims({2, 4, 3, 5}));
  });
}

TEST(FusePatterns, SoftmaxOfAttention) {
  EXPECT_EQ(attention(-1, dims({2, 1, 1, 5})), "quench.exec.ScaledSoftmax(q,m)->y");
  EXPECT_EQ(attention(3, dims({5})), "quench.exec.ScaledSoftmax(q,m)->y");
  EXPECT_EQ(attention(2, dims({5})), "Div(q,eight)->d Add(d,m)->a Softmax(a)->y");
}

/// Products around a Softmax, with what the score goes through in between.
std::string heads(bool scales, bool masks, const passes::PassOptions& options = {}) {
  Builder b;
  b.input("q", dims({2, 4, 3, 6})).input("k", dims({2, 4, 6, 5})).input("v", dims({2, 4, 5, 7}));
  b.input("m", dims({2, 1, 1, 5})).number("eight", 8);
  b.node("MatMul", {"q", "k"}, {"s"});
  std::string last = "s";
  if (scales) b.node("Div", {last, "eight"}, {"d"}), last = "d";
  if (masks) b.node("Add", {last, "m"}, {"a"}), last = "a";
  b.node("Softmax", {last}, {"p"}).set("axis", std::int64_t{-1});
  b.node("MatMul", {"p", "v"}, {"y"});
  b.output("y");
  for (const char* name : {"s", "d", "a", "p"}) {
    if (b.id(name) != kNoValue) b.type(name, dims({2, 4, 3, 5}));
  }
  b.run({"fuse_patterns", "fuse_attention"}, options);
  return b.text();
}

TEST(FusePatterns, Attention) {
  EXPECT_EQ(heads(true, true), "quench.exec.ScaledAttention(q,k,v,m)->y");
  EXPECT_EQ(heads(false, true), "quench.exec.ScaledAttention(q,k,v,m)->y");
  EXPECT_EQ(heads(false, false), "quench.exec.ScaledAttention(q,k,v)->y");
  for (const char* tap : {"s", "p"}) {
    EXPECT_EQ(heads(true, true, {.keep = {tap}}),
              "MatMul(q,k)->s quench.exec.ScaledSoftmax(s,m)->p MatMul(p,v)->y");
  }
}

}  // namespace
}  // namespace quench::testing
