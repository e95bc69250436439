// SPDX-License-Identifier: Apache-2.0
// Folding of scales and shifts, against layers computed plainly in double.
#include <cmath>
#include <random>

#include "passes/rewriter.h"
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

using Numbers = std::vector<double>;

std::vector<float> random_numbers(std::int64_t count, float low = -1, float high = 1) {
  static std::mt19937 engine(7);
  std::uniform_real_distribution<float> pick(low, high);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& each : result) each = pick(engine);
  return result;
}

Numbers constant(Builder& b, ValueId id) {
  return id == kNoValue ? Numbers() : passes::to_doubles(*b.graph().constant(id));
}

/// A stride-1 convolution without padding of x [channels, size, size]; square kernels.
struct PlainConv {
  int in = 0, out = 0, kernel = 1, group = 1;
  bool transposed = false;
  static constexpr int kSize = 4;

  int out_size() const { return transposed ? kSize + kernel - 1 : kSize - kernel + 1; }
  std::int64_t weight_size() const { return std::int64_t{in} * (out / group) * kernel * kernel; }
  Shape weight_shape() const {
    if (transposed) return {in, out / group, kernel, kernel};
    return {out, in / group, kernel, kernel};
  }
  Numbers run(const Numbers& x, const Numbers& w, const Numbers& bias) const {
    const int size = out_size();
    Numbers y(static_cast<std::size_t>(out * size * size), 0.0);
    for (int o = 0; o < out; ++o) {
      for (int c = 0; c < in; ++c) {
        if (o / (out / group) != c / (in / group)) continue;
        const int slice = transposed ? c * (out / group) + o % (out / group)
                                     : o * (in / group) + c % (in / group);
        add_plane(x, c, &w[static_cast<std::size_t>(slice * kernel * kernel)], y, o);
      }
      for (int i = 0; i < size * size && !bias.empty(); ++i) {
        y[static_cast<std::size_t>(o * size * size + i)] += bias[static_cast<std::size_t>(o)];
      }
    }
    return y;
  }
  void add_plane(const Numbers& x, int c, const double* w, Numbers& y, int o) const {
    const int size = out_size();
    const int span = transposed ? kSize : size;
    for (int i = 0; i < span * span * kernel * kernel; ++i) {
      const int kx = i % kernel, ky = i / kernel % kernel;
      const int px = i / kernel / kernel % span, py = i / kernel / kernel / span;
      const int xy = transposed ? py * kSize + px : (py + ky) * kSize + px + kx;
      const int yy = transposed ? (py + ky) * size + px + kx : py * size + px;
      y[static_cast<std::size_t>(o * size * size + yy)] +=
          x[static_cast<std::size_t>(c * kSize * kSize + xy)] * w[ky * kernel + kx];
    }
  }
};

/// BatchNormalization over axis 1 of [1, channels, inner].
void add_batchnorm(Builder& b, const std::string& in, const std::string& out, int channels) {
  b.numbers("gamma", {channels}, random_numbers(channels, 0.5F, 2));
  b.numbers("beta", {channels}, random_numbers(channels));
  b.numbers("mean", {channels}, random_numbers(channels));
  b.numbers("var", {channels}, random_numbers(channels, 0.01F, 3));
  b.node("BatchNormalization", {in, "gamma", "beta", "mean", "var"}, {out}).set("epsilon", 1e-3F);
}

void plain_batchnorm(Builder& b, Numbers& y, int channels) {
  const Numbers gamma = constant(b, b.id("gamma")), beta = constant(b, b.id("beta"));
  const Numbers mean = constant(b, b.id("mean")), var = constant(b, b.id("var"));
  const std::size_t inner = y.size() / static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = i / inner;
    y[i] = (y[i] - mean[c]) / std::sqrt(var[c] + double{1e-3F}) * gamma[c] + beta[c];
  }
}

void expect_near(const Numbers& got, const Numbers& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
  }
}

void check_conv(const PlainConv& conv, bool with_bias) {
  Builder b;
  b.input("x", dims({1, conv.in, conv.kSize, conv.kSize}));
  b.numbers("w", conv.weight_shape(), random_numbers(conv.weight_size()));
  std::vector<std::string> inputs = {"x", "w"};
  if (with_bias) {
    b.numbers("bias", {conv.out}, random_numbers(conv.out));
    inputs.emplace_back("bias");
  }
  b.node(conv.transposed ? "ConvTranspose" : "Conv", inputs, {"c"})
      .set("group", std::int64_t{conv.group});
  add_batchnorm(b, "c", "n", conv.out);
  b.number("half", 0.5F).numbers("k", {conv.out, 1, 1}, random_numbers(conv.out));
  b.node("Mul", {"half", "n"}, {"m"});
  b.node("Sub", {"k", "m"}, {"y"});
  b.output("y");

  const std::vector<float> sample = random_numbers(conv.in * conv.kSize * conv.kSize);
  const Numbers x(sample.begin(), sample.end());
  Numbers wanted = conv.run(x, constant(b, b.id("w")), constant(b, b.id("bias")));
  plain_batchnorm(b, wanted, conv.out);
  const Numbers k = constant(b, b.id("k"));
  const std::size_t inner = wanted.size() / k.size();
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = k[i / inner] - 0.5 * wanted[i];

  EXPECT_EQ(b.run({"fold_batchnorm"}).changes, 1U);
  ASSERT_EQ(b.graph().nodes.size(), 1U);
  const Node& folded = b.graph().nodes[0];
  EXPECT_EQ(b.text(), folded.op_type + (with_bias ? "(x,w,bias)->y" : "(x,w,w_bias)->y"));
  expect_near(conv.run(x, constant(b, folded.inputs[1]), constant(b, folded.inputs[2])), wanted);
}

TEST(FoldBatchnorm, Convolutions) {
  for (const bool bias : {false, true}) {
    check_conv({.in = 3, .out = 5, .kernel = 1}, bias);
    check_conv({.in = 4, .out = 6, .kernel = 3, .group = 2}, bias);
    check_conv({.in = 4, .out = 4, .kernel = 3, .group = 4}, bias);
    check_conv({.in = 3, .out = 5, .kernel = 2, .transposed = true}, bias);
    check_conv({.in = 6, .out = 4, .kernel = 2, .group = 2, .transposed = true}, bias);
  }
}

/// [1,k] x [k,n] with Gemm's attributes.
Numbers plain_gemm(Builder& b, const Node& node, const Numbers& x) {
  const Numbers w = constant(b, node.inputs[1]), c = constant(b, node.input(2));
  const std::size_t k = x.size(), n = w.size() / k;
  Numbers y(n, 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < k; ++i) {
      y[j] += x[i] * w[node.get_int("transB", 0) != 0 ? j * k + i : i * n + j];
    }
    y[j] *= double{node.get_float("alpha", 1)};
    if (!c.empty()) y[j] += double{node.get_float("beta", 1)} * c[c.size() == 1 ? 0 : j];
  }
  return y;
}

void check_gemm(bool transposed, std::optional<Shape> bias) {
  Builder b;
  b.input("x", dims({-1, 3}));
  b.numbers("w", transposed ? Shape{4, 3} : Shape{3, 4}, random_numbers(12));
  std::vector<std::string> inputs = {"x", "w"};
  if (bias) {
    b.numbers("bias", *bias, random_numbers(*num_elements(*bias)));
    inputs.emplace_back("bias");
  }
  Node& gemm = b.node("Gemm", inputs, {"g"});
  gemm.set("transB", std::int64_t{transposed});
  gemm.set("alpha", 0.75F);
  gemm.set("beta", 0.25F);
  add_batchnorm(b, "g", "y", 4);
  b.output("y");
  const Numbers x = {0.5, -1, 2};
  Numbers wanted = plain_gemm(b, b.graph().nodes[0], x);
  plain_batchnorm(b, wanted, 4);
  EXPECT_EQ(b.run({"fold_batchnorm"}).changes, 1U);
  ASSERT_EQ(b.graph().nodes.size(), 1U);
  expect_near(plain_gemm(b, b.graph().nodes[0], x), wanted);
}

TEST(FoldBatchnorm, Gemm) {
  for (const bool transposed : {false, true}) {
    check_gemm(transposed, std::nullopt);
    check_gemm(transposed, Shape{4});
    check_gemm(transposed, Shape{1, 4});
    check_gemm(transposed, Shape{});
  }
}

TEST(FoldBatchnorm, MatMulKeepsOneAdd) {
  Builder b;
  b.input("x", dims({-1, 7, 3}));
  b.numbers("w", {3, 4}, random_numbers(12)).numbers("bias", {4}, random_numbers(4));
  b.node("MatMul", {"x", "w"}, {"m"});
  b.type("m", dims({-1, 7, 4}));
  b.node("Add", {"m", "bias"}, {"a"});
  b.numbers("scale", {1}, {0.125F});
  b.node("Mul", {"a", "scale"}, {"y"});
  b.output("y");
  const Numbers x = {0.5, -1, 2};
  const Numbers bias = constant(b, b.id("bias"));
  Numbers wanted = plain_gemm(b, b.graph().nodes[0], x);
  for (std::size_t i = 0; i < 4; ++i) wanted[i] = (wanted[i] + bias[i]) * 0.125;
  b.run({"fold_batchnorm"});
  EXPECT_EQ(b.text(), "MatMul(x,w)->m Add(m,w_bias)->y");
  Numbers got = plain_gemm(b, b.graph().nodes[0], x);
  for (std::size_t i = 0; i < 4; ++i) got[i] += constant(b, b.id("w_bias"))[i];
  expect_near(got, wanted);
  EXPECT_EQ(b.run({"fold_batchnorm"}).changes, 0U);  // a bias alone is left as it is
}

TEST(FoldBatchnorm, HalfWeightsStayHalf) {
  Builder b;
  b.input("x", dims({1, 1, 2, 2}), DType::Float16);
  b.constant("w", convert(Tensor::of<float>({1, 1, 1, 1}, {0.5F}), DType::Float16));
  b.constant("k", convert(Tensor::scalar(3.0F), DType::Float16));
  b.node("Conv", {"x", "w"}, {"c"});
  b.node("Mul", {"c", "k"}, {"y"});
  b.output("y");
  b.run({"fold_batchnorm"});
  EXPECT_EQ(b.text(), "Conv(x,w)->y");
  EXPECT_EQ(b.graph().constant(b.id("w"))->dtype(), DType::Float16);
  EXPECT_EQ(to_float(*b.graph().constant(b.id("w"))).front(), 1.5F);
}

TEST(FoldBatchnorm, SharedWeightsGetTheirOwnCopy) {
  Builder b;
  b.input("x", dims({1, 1, 2, 2})).numbers("w", {1, 1, 1, 1}, {2}).number("k", 3);
  b.node("Conv", {"x", "w"}, {"c1"});
  b.node("Conv", {"x", "w"}, {"c2"});
  b.node("Mul", {"c1", "k"}, {"y1"});
  b.node("Relu", {"c2"}, {"y2"});
  b.output("y1").output("y2");
  b.run({"fold_batchnorm"});
  EXPECT_EQ(b.text(), "Conv(x,w_1)->y1 Conv(x,w)->c2 Relu(c2)->y2");
  EXPECT_EQ(constant(b, b.id("w")), Numbers{2});
  EXPECT_EQ(constant(b, b.id("w_1")), Numbers{6});
}

/// Conv(1 -> 2 channels) and what `change` makes of it; whether the pass did anything.
bool folds(const std::function<void(Builder&)>& change, const passes::PassOptions& options = {},
           std::int64_t opset = 13) {
  Builder b(opset);
  b.input("x", dims({-1, 1, 4, 4})).numbers("w", {2, 1, 1, 1}, {1, 2});
  b.node("Conv", {"x", "w"}, {"c"});
  change(b);
  if (b.graph().outputs.empty()) b.output("y");
  return b.run({"fold_batchnorm"}, options).changes != 0;
}

TEST(FoldBatchnorm, BatchNormIsFoldedOnlyInInference) {
  const auto plain = [](Builder& b) { add_batchnorm(b, "c", "y", 2); };
  EXPECT_TRUE(folds(plain));
  EXPECT_FALSE(
      folds([&](Builder& b) { plain(b), b.graph().nodes[1].set("training_mode", std::int64_t{1}); },
            {}, 15));
  EXPECT_FALSE(folds(
      [&](Builder& b) { plain(b), b.graph().nodes[1].set("spatial", std::int64_t{0}); }, {}, 7));
  EXPECT_FALSE(folds(plain, {}, 6));
  EXPECT_FALSE(folds([&](Builder& b) {
    plain(b);
    b.graph().nodes[1].outputs.push_back(b.graph().add_fresh("new_mean"));
    b.output("y").output("new_mean");
  }));
  // Before opset 14 that was training, whether or not anybody reads it.
  const auto trains = [&](Builder& b) {
    plain(b);
    b.graph().nodes[1].outputs.push_back(b.graph().add_fresh("new_mean"));
  };
  EXPECT_FALSE(folds(trains, {}, 8));
  EXPECT_FALSE(folds(trains, {}, 13));
  EXPECT_FALSE(folds([&](Builder& b) {
    plain(b);
    (*b.graph()[b.id("var")].constant).mutable_data<float>()[0] = -5;  // no square root
  }));
}

TEST(FoldBatchnorm, ConstantsThatBroadcastOtherwiseStay) {
  const auto mul = [](Shape shape) {
    return [=](Builder& b) {
      b.numbers("k", shape, random_numbers(*num_elements(shape), 1, 2));
      b.node("Mul", {"c", "k"}, {"y"});
    };
  };
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{1, 2, 1, 1}, Shape{2, 1, 1}, Shape{1, 1, 1, 1}}) {
    EXPECT_TRUE(folds(mul(shape))) << to_string(shape);
  }
  for (const Shape& shape : {Shape{2}, Shape{4}, Shape{2, 1}, Shape{2, 1, 1, 1}, Shape{1, 4, 4},
                             Shape{1, 1, 2, 1, 1}, Shape{1, 1, 1, 1, 1}, Shape{0}}) {
    EXPECT_FALSE(folds(mul(shape))) << to_string(shape);
  }
}

TEST(FoldBatchnorm, WhatOthersReadOrWantStays) {
  const auto mul = [](Builder& b) {
    b.number("k", 2);
    b.node("Mul", {"c", "k"}, {"y"});
  };
  EXPECT_TRUE(folds(mul));
  EXPECT_FALSE(folds(mul, {.keep = {"c"}}));
  EXPECT_FALSE(folds(mul, {.keep = {"w"}}));
  EXPECT_TRUE(folds(mul, {.keep = {"y"}}));
  EXPECT_FALSE(folds([&](Builder& b) { mul(b), b.output("c").output("y"); }));
  EXPECT_FALSE(
      folds([&](Builder& b) { mul(b), b.node("Relu", {"c"}, {"z"}), b.output("z").output("y"); }));
  EXPECT_FALSE(
      folds([&](Builder& b) { mul(b), add_if_reading(b, "c", "z"), b.output("z").output("y"); }));
  EXPECT_FALSE(folds([](Builder& b) {  // 2 / c
    b.number("k", 2);
    b.node("Div", {"k", "c"}, {"y"});
  }));
  EXPECT_FALSE(folds([](Builder& b) { b.number("k", 0), b.node("Div", {"c", "k"}, {"y"}); }));
}

TEST(FoldBatchnorm, AWeightTheCallerMayOverrideStays) {
  const auto overridable = [](std::int64_t ir_version) {
    return [=](Builder& b) {
      b.model.ir_version = ir_version;
      b.graph().inputs.push_back(b.id("w"));
      b.number("k", 2);
      b.node("Mul", {"c", "k"}, {"y"});
    };
  };
  EXPECT_TRUE(folds(overridable(3), {.inputs_override = true}));
  EXPECT_FALSE(folds(overridable(8), {.inputs_override = true}));
  EXPECT_TRUE(folds(overridable(8)));
}

}  // namespace
}  // namespace quench::testing
