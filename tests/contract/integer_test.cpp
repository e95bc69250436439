// SPDX-License-Identifier: Apache-2.0
// Every integer kernel gives what ONNX defines, computed in double precision: at most one element
// in a thousand may differ, by one step, where rounding inside the requantisation decides.
#include <cmath>

#include "contract/integer_maker.h"

namespace quench {
namespace {

using testing::Comparison;
using testing::Ints;
using testing::Maker;

const Context kContext{.threads = 2};

void conv(Maker& m) {
  const std::int64_t groups = m.pick(0, 2) == 0 ? m.pick(2, 3) : 1;
  const bool depthwise = m.pick(0, 3) == 0;
  const std::int64_t in = depthwise ? m.pick(1, 40) : groups * m.pick(1, 20);
  const std::int64_t out = depthwise ? in : groups * m.pick(1, 24);
  const std::int64_t kernel = m.pick(1, 3);
  const Shape shape = {m.pick(1, 2), in, m.pick(5, 12), m.pick(5, 12)};
  const std::string x = m.activation(shape);
  const float scale = m.last_scale();
  const std::int64_t group = depthwise ? in : groups;
  const std::string w = m.weights({out, in / group, kernel, kernel}, 0);
  std::vector<std::string> inputs = {x, w};
  if (m.flip()) inputs.push_back(m.bias(out, scale));
  Node& node = m.node("Conv", inputs);
  const std::string y = m.last();
  node.set("group", group);
  node.set("strides", Ints(2, m.pick(1, 2)));
  node.set("dilations", Ints(2, m.pick(1, 2)));
  node.set("pads", m.flip() ? Ints{0, 0, 0, 0} : Ints{1, m.pick(0, 1), m.pick(0, 2), 1});
  const float reach = std::sqrt(static_cast<float>(in / group * kernel * kernel));
  m.finish(m.activated(y), 0.01F * reach);
}

void depthwise(Maker& m) {
  const std::int64_t channels = m.pick(0, 1) == 0 ? m.pick(1, 150) : 16 * m.pick(1, 12);
  const std::int64_t kernel = m.pick(1, 5);
  const std::string x = m.activation({m.pick(1, 2), channels, m.pick(9, 14), m.pick(9, 14)});
  const float scale = m.last_scale();
  std::vector<std::string> inputs = {x, m.weights({channels, 1, kernel, m.pick(1, 5)}, 0)};
  if (m.flip()) inputs.push_back(m.bias(channels, scale));
  Node& node = m.node("Conv", inputs);
  const std::string y = m.last();
  node.set("group", channels);
  node.set("strides", Ints{m.pick(1, 3), m.pick(1, 3)});
  node.set("dilations", Ints{m.pick(1, 2), m.pick(1, 2)});
  node.set("pads", m.flip() ? Ints{0, 0, 0, 0} : Ints{2, m.pick(0, 1), m.pick(0, 2), 1});
  m.finish(m.activated(y), 0.04F);
}

/// x times the gate of x, where every channel may have a factor of its own.
void gate(Maker& m) {
  const std::int64_t channels = m.pick(1, 70);
  const std::string x = m.activation({m.pick(1, 2), channels, m.pick(1, 9), m.pick(1, 9)}, 0.05F);
  std::vector<float> factors(static_cast<std::size_t>(channels));
  for (float& each : factors) each = m.uniform(0.5F, 2);
  const std::string scaled = m.flip() ? m.apply("Mul", {x, m.reals({channels, 1, 1}, factors)}) : x;
  const std::string gated = m.apply("Mul", {x, m.apply("HardSigmoid", {scaled})});
  m.finish(gated, 0.05F);
}

void residual(Maker& m) {
  const std::int64_t channels = m.pick(1, 32);
  const Shape shape = {m.pick(1, 2), channels, 7, 6};
  const std::string x = m.activation(shape);
  const float scale = m.last_scale();
  const std::string w = m.weights({channels, channels, 1, 1}, 0);
  const std::string product = m.apply("Conv", {x, w, m.bias(channels, scale)});
  const std::string sum = m.apply("Add", {product, m.activation(shape)});
  // Of those that the sum takes along.
  m.finish(m.flip() ? sum : m.activated(sum, m.pick(0, 4)), 0.03F);
}

/// The layer is rounded before the sum, which the layer's kernel makes too.
void rounded_residual(Maker& m) {
  const std::int64_t channels = 2 * m.pick(1, 40);
  const Shape shape = {m.pick(1, 2), channels, 7, 6};
  const std::string x = m.activation(shape);
  const float scale = m.last_scale();
  const std::int64_t groups = m.flip() ? 1 : 2;
  const std::string w = m.weights({channels, channels / groups, 1, 1}, 0);
  Node& node = m.node("Conv", {x, w, m.bias(channels, scale)});
  const std::string product = m.last();
  node.set("group", groups);
  const std::string rounded = m.rounded(m.activated(product), 0.03F);
  const std::string other = m.activation(shape);
  const std::string sum = m.apply("Add", m.flip() ? std::vector<std::string>{rounded, other}
                                                  : std::vector<std::string>{other, rounded});
  m.finish(m.flip() ? m.apply("Relu", {sum}) : sum, 0.03F);
}

void conv_transpose(Maker& m) {
  const std::int64_t in = m.pick(1, 20);
  const std::int64_t out = m.pick(1, 20);
  const std::int64_t kernel = m.pick(1, 3);
  const std::string x = m.activation({m.pick(1, 2), in, m.pick(2, 7), m.pick(2, 7)});
  const float scale = m.last_scale();
  const std::string w = m.weights({in, out, kernel, kernel}, 1);
  std::vector<std::string> inputs = {x, w};
  if (m.flip()) inputs.push_back(m.bias(out, scale));
  Node& node = m.node("ConvTranspose", inputs);
  const std::string y = m.last();
  node.set("strides", Ints(2, m.pick(1, 3)));
  if (kernel > 1 && m.flip()) node.set("pads", Ints{0, 1, 1, 0});
  m.finish(m.activated(y), 0.01F * std::sqrt(static_cast<float>(in)));
}

void gemm(Maker& m) {
  const std::int64_t depth = m.pick(1, 80);
  const std::int64_t width = m.pick(1, 70);
  const std::string x = m.activation({m.pick(1, 40), depth});
  const float scale = m.last_scale();
  const bool transposed = m.flip();
  const std::string w = transposed ? m.weights({width, depth}, 0) : m.weights({depth, width}, 1);
  std::vector<std::string> inputs = {x, w};
  if (m.flip()) inputs.push_back(m.bias(width, scale));
  Node& node = m.node("Gemm", inputs);
  const std::string y = m.last();
  node.set("transB", std::int64_t{transposed ? 1 : 0});
  m.finish(m.activated(y), 0.01F * std::sqrt(static_cast<float>(depth)));
}

void matmul(Maker& m) {
  const std::int64_t depth = m.pick(1, 80);
  const std::int64_t width = m.pick(1, 70);
  const std::string x = m.activation({m.pick(1, 3), m.pick(1, 20), depth});
  const std::string y = m.apply("MatMul", {x, m.weights({depth, width}, 1)});
  m.finish(m.activated(y), 0.01F * std::sqrt(static_cast<float>(depth)));
}

void both_activations(Maker& m) {
  const std::int64_t depth = m.pick(1, 70);
  const std::int64_t batch = m.pick(1, 3);
  const std::string a = m.activation({2, batch, m.pick(1, 20), depth});
  const std::string b = m.activation({2, m.flip() ? batch : 1, depth, m.pick(1, 20)});
  m.finish(m.apply("MatMul", {a, b}), 0.04F * std::sqrt(static_cast<float>(depth)));
}

void binary(Maker& m) {
  const Shape shape = {m.pick(1, 2), m.pick(1, 40), m.pick(1, 9), m.pick(1, 9)};
  Shape other = shape;
  if (m.pick(0, 2) == 0) other = {shape[0], shape[1], 1, 1};
  const std::string a = m.activation(shape);
  const std::string b = m.activation(other);
  const bool add = m.flip();
  const std::string y = m.apply(add ? "Add" : "Mul", {a, b});
  const std::string clipped = m.pick(0, 2) == 0 ? m.apply("Relu", {y}) : y;
  m.finish(clipped, add ? 0.03F : 0.05F);
}

/// Channels times factors, as squeeze-and-excitation does.
void excite(Maker& m) {
  const std::int64_t channels = m.pick(1, 70);
  const std::int64_t batch = m.pick(1, 2);
  const std::string x = m.activation({batch, channels, m.pick(2, 9), m.pick(2, 9)});
  const std::string w = m.weights({channels, channels, 1, 1}, 0);
  const float reach = std::sqrt(static_cast<float>(channels));
  const std::string y = m.rounded(m.apply("Conv", {x, w}), 0.01F * reach);
  const std::string gates = m.activation({batch, channels, 1, 1}, 0.004F);
  const bool left = m.flip();
  m.finish(m.apply("Mul", {left ? gates : y, left ? y : gates}), 0.015F * reach);
}

void concat(Maker& m) {
  const Shape shape = {m.pick(1, 2), m.pick(1, 9), 5, 4};
  const std::string a = m.activation(shape);
  const std::string b = m.activation(shape);
  Node& node = m.node("Concat", {a, b});
  node.set("axis", m.pick(1, 3));
  m.finish(m.last(), 0.02F, m.flip());
}

void pool(Maker& m) {
  const std::int64_t kind = m.pick(0, 2);
  // Large images are shared between threads.
  const std::int64_t height = kind == 0 && m.pick(0, 7) == 0 ? 60 : m.pick(4, 9);
  const std::int64_t width = height == 60 ? 50 : m.pick(4, 9);
  const std::string x = m.activation({m.pick(1, 2), m.pick(1, 100), height, width});
  if (kind == 0) return m.finish(m.apply("GlobalAveragePool", {x}), 0.01F);
  Node& node = m.node(kind == 1 ? "AveragePool" : "MaxPool", {x});
  const std::string y = m.last();
  node.set("kernel_shape", Ints{3, 2});
  node.set("strides", Ints{2, 1});
  node.set("pads", Ints{1, 0, 1, 1});
  if (kind == 1) node.set("count_include_pad", m.pick(0, 1));
  m.finish(y, 0.02F, kind == 2);
}

void function(Maker& m) {
  static constexpr std::array kNames = {"Sigmoid", "LeakyRelu",   "HardSwish", "Tanh",
                                        "Relu",    "HardSigmoid", "Elu",       "Erf"};
  const std::string x = m.activation({m.pick(1, 3), m.pick(1, 50), 3}, 0.05F);
  const auto which = static_cast<std::size_t>(m.pick(0, std::ssize(kNames) - 1));
  m.finish(m.apply(kNames[which], {x}), 0.02F);
}

void softmax(Maker& m) {
  const std::string x = m.activation({m.pick(1, 3), m.pick(1, 9), m.pick(1, 50)}, 0.05F);
  m.node("Softmax", {x}).set("axis", std::int64_t{-1});
  m.finish(m.last(), 1.0F / 256);
}

void move(Maker& m) {
  const std::string x = m.activation({2, 8, 5, 4});
  switch (m.pick(0, 3)) {
    case 0:
      return m.finish(m.apply("Reshape", {x, m.ints({2, -1})}), 0.02F, m.flip());
    case 1: {
      m.node("Transpose", {x}).set("perm", Ints{0, 2, 3, 1});
      return m.finish(m.last(), 0.02F, m.flip());
    }
    case 2: {
      Node& node = m.node("Resize", {x, "", m.reals({4}, {1, 1, 2, 2})});
      node.set("mode", std::string("nearest"));
      return m.finish(m.last(), 0.02F, true);
    }
    default:
      return m.finish(m.apply("Slice", {x, m.ints({1}), m.ints({7}), m.ints({1})}), 0.02F, true);
  }
}

struct Family {
  const char* name;
  void (*make)(Maker&);
};

constexpr std::array kFamilies = {Family{"conv", conv},
                                  Family{"depthwise", depthwise},
                                  Family{"gate", gate},
                                  Family{"residual", residual},
                                  Family{"rounded_residual", rounded_residual},
                                  Family{"conv_transpose", conv_transpose},
                                  Family{"gemm", gemm},
                                  Family{"matmul", matmul},
                                  Family{"both_activations", both_activations},
                                  Family{"binary", binary},
                                  Family{"excite", excite},
                                  Family{"concat", concat},
                                  Family{"pool", pool},
                                  Family{"function", function},
                                  Family{"softmax", softmax},
                                  Family{"move", move}};

class IntegerKernels : public ::testing::TestWithParam<Family> {};

TEST_P(IntegerKernels, EqualTheDefinition) {
  constexpr std::uint64_t kSeeds = 150;
  Comparison comparison;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    comparison.add(GetParam().make, seed);
    if (HasFatalFailure()) return;
  }
  comparison.finish(GetParam().name);
}

TEST(IntegerResidual, IsAddedByTheConvolution) {
  if (used_isa() < Isa::Vnni) GTEST_SKIP() << "no products of bytes";
  Maker m(1, DType::Float32);
  const std::string x = m.activation({1, 24, 7, 6});
  const std::string w = m.weights({24, 24, 1, 1}, 0);
  const std::string product = m.rounded(m.apply("Conv", {x, w}), 0.03F);
  m.finish(m.apply("Relu", {m.apply("Add", {product, x})}), 0.03F);
  std::vector<std::string> ran;
  SessionOptions options;
  options.on_step = [&](const StepTime& step) { ran.emplace_back(step.op_type); };
  Session session(m.model(), options, kContext);
  session.run(m.feeds());
  EXPECT_EQ(ran, std::vector<std::string>{"QLinearConv"});
}

TEST(IntegerTable, LooksUpWhatStaysReal) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Maker m(seed, DType::Float32);
    const std::string x = m.activation({2, 3, m.pick(1, 40), m.pick(1, 40)});
    const std::string gate = m.apply(seed % 2 == 0 ? "HardSigmoid" : "Tanh", {x});
    m.output(m.apply("Mul", {x, gate}));
    std::vector<std::string> ran;
    SessionOptions options;
    options.on_step = [&](const StepTime& step) { ran.emplace_back(step.op_type); };
    Session session(m.model(), options, kContext);
    Session simulated(m.model(), {.integer = false}, kContext);
    EXPECT_EQ(session.run(m.feeds()), simulated.run(m.feeds())) << seed;
    const bool limited = used_isa() < Isa::Vnni;
    if (!limited) {
      EXPECT_EQ(ran, std::vector<std::string>{"Table"});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, IntegerKernels, ::testing::ValuesIn(kFamilies),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace quench
