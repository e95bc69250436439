// SPDX-License-Identifier: Apache-2.0
// Every activation behind every kind of layer, and behind convolutions of many shapes.
#include <cmath>

#include "contract/integer_maker.h"

namespace quench {
namespace {

using testing::Comparison;
using testing::Ints;
using testing::Maker;

/// A convolution of so many groups, with so many input and output channels each.
struct Form {
  std::int64_t groups, in, out;
};

/// The steps of a result that sums up so many products.
float step(std::int64_t products) { return 0.01F * std::sqrt(static_cast<float>(products)); }

void convolution(Maker& m, const Form& form, std::int64_t activation) {
  const std::int64_t channels = form.groups * form.out;
  const std::int64_t kernel = m.flip() ? 1 : 3;
  const std::string x = m.activation({1, form.groups * form.in, 7, 6});
  const float scale = m.last_scale();
  std::vector<std::string> inputs = {x, m.weights({channels, form.in, kernel, kernel}, 0)};
  if (m.flip()) inputs.push_back(m.bias(channels, scale));
  Node& node = m.node("Conv", inputs);
  const std::string y = m.last();
  node.set("group", form.groups);
  node.set("strides", Ints(2, m.pick(1, 2)));
  node.set("pads", Ints(4, m.flip() ? kernel / 2 : 0));
  m.finish(m.activated(y, activation), step(form.in * kernel * kernel));
}

/// With a residual that is added before the activation.
void residual(Maker& m, std::int64_t activation) {
  const std::int64_t groups = m.pick(1, 2);
  const std::int64_t each = m.flip() ? m.pick(1, 9) : 8 * m.pick(1, 2);
  const Shape shape = {m.pick(1, 2), groups * each, 7, 6};
  const std::string x = m.activation(shape);
  Node& node = m.node("Conv", {x, m.weights({groups * each, each, 1, 1}, 0)});
  const std::string product = m.last();
  node.set("group", groups);
  const std::string sum = m.apply("Add", {product, m.activation(shape)});
  m.finish(m.activated(sum, activation), 0.02F + step(each));
}

void transposed(Maker& m, std::int64_t activation) {
  const std::int64_t in = m.pick(1, 20);
  const std::int64_t out = m.pick(1, 20);
  const std::int64_t kernel = m.pick(1, 3);
  const std::string x = m.activation({m.pick(1, 2), in, m.pick(2, 7), m.pick(2, 7)});
  Node& node = m.node("ConvTranspose", {x, m.weights({in, out, kernel, kernel}, 1)});
  const std::string y = m.last();
  node.set("strides", Ints(2, m.pick(1, 3)));
  m.finish(m.activated(y, activation), step(in * kernel));
}

void gemm(Maker& m, std::int64_t activation) {
  const std::int64_t depth = m.pick(1, 80);
  const std::int64_t width = m.pick(1, 70);
  const std::string x = m.activation({m.pick(1, 40), depth});
  const float scale = m.last_scale();
  std::vector<std::string> inputs = {x, m.weights({depth, width}, 1)};
  if (m.flip()) inputs.push_back(m.bias(width, scale));
  m.finish(m.activated(m.apply("Gemm", inputs), activation), step(depth));
}

void matmul(Maker& m, std::int64_t activation) {
  const std::int64_t depth = m.pick(1, 80);
  const std::string x = m.activation({m.pick(1, 3), m.pick(1, 20), depth});
  const std::string y = m.apply("MatMul", {x, m.weights({depth, m.pick(1, 70)}, 1)});
  m.finish(m.activated(y, activation), step(depth));
}

/// Neither factor is constant.
void both(Maker& m, std::int64_t activation) {
  const std::int64_t depth = m.pick(1, 70);
  const std::string a = m.activation({2, m.pick(1, 20), depth});
  const std::string b = m.activation({2, depth, m.pick(1, 20)}, 0.005F);
  m.finish(m.activated(m.apply("MatMul", {a, b}), activation), step(depth));
}

class IntegerActivation : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(IntegerActivation, BehindConvolutionsOfManyShapes) {
  Comparison comparison;
  std::uint64_t seed = 0;
  for (const std::int64_t groups : {1, 2, 4, 16}) {
    for (const std::int64_t in : {1, 3, 4, 8}) {
      for (const std::int64_t out : {1, 8, 16}) {
        SCOPED_TRACE(::testing::Message() << groups << " groups of " << in << " to " << out);
        const Form form{.groups = groups, .in = in, .out = out};
        comparison.add([&](Maker& m) { convolution(m, form, GetParam()); }, seed++);
        if (HasFatalFailure()) return;
      }
    }
  }
  comparison.finish("convolutions");
}

TEST_P(IntegerActivation, BehindOtherLayers) {
  constexpr std::uint64_t kSeeds = 12;
  using Make = void (*)(Maker&, std::int64_t);
  for (const Make make : {residual, transposed, gemm, matmul, both}) {
    // Not every activation is part of a sum with a residual.
    Comparison comparison(make != residual);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      comparison.add([&](Maker& m) { make(m, GetParam()); }, seed);
      if (HasFatalFailure()) return;
    }
    comparison.finish("a layer");
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, IntegerActivation,
                         ::testing::Range(std::int64_t{0}, Maker::kNumActivations));

}  // namespace
}  // namespace quench
