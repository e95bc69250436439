// SPDX-License-Identifier: Apache-2.0
// Weights that no activation can make saturate where products are added in 16 bits.
#include <algorithm>
#include <random>

#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;

/// One layer over `in` channels or columns, and grids for it.
struct Layer : Builder {
  QuantPlan plan;
  QuantSolution solution;

  explicit Layer(Shape weight, const std::string& op = "Conv", int activation_bits = 8,
                 const std::string& isa = "avx2")
      : Builder(13) {
    const bool conv = op == "Conv";
    const std::int64_t in = conv ? weight[1] : weight[0];
    input("x", conv ? std::vector<Dim>{{1}, {in}, {8}, {8}} : std::vector<Dim>{{1}, {in}});
    numbers("w", weight, random(weight));
    node(op, {"x", "w"}, {"y"}).name = "layer";
    output("y");
    infer_types(model);
    QuantConfig config;
    config.isa = isa;
    config.global.activation_bits = activation_bits;
    plan = make_plan(model, config);
    for (const auto& [name, value] : plan.values) {
      if (value.kind == ValuePlan::Kind::Float) continue;
      solution.values[name] = choose_params(value.spec, {Range{.min = -1, .max = 3}});
    }
    const std::int64_t channels = conv ? weight[0] : weight[1];
    solution.weights[{"y", 1}] =
        choose_params(plan.weights.at(0).spec,
                      std::vector<Range>(static_cast<std::size_t>(channels), Range{-1, 1}));
  }

  static std::vector<float> random(const Shape& shape) {
    std::minstd_rand generator(3);
    std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
    for (float& value : values) {
      value = static_cast<float>(generator() % 2001) / 1000.0F - 1.0F;
    }
    return values;
  }

  QuantParams& grid() { return solution.weights.at({"y", 1}); }
  Tensor integers() { return quantize_tensor(*graph().constant(id("w")), grid()); }
};

/// What vpmaddubsw would have to hold for two weights, at the worst two activations of 0..`top`.
std::int64_t worst(std::int64_t a, std::int64_t b, std::int64_t top) {
  const std::int64_t up = std::max<std::int64_t>(a, 0) + std::max<std::int64_t>(b, 0);
  const std::int64_t down = std::min<std::int64_t>(a, 0) + std::min<std::int64_t>(b, 0);
  return std::max(up, -down) * top;
}

/// The worst pair of a convolution whose channels are innermost, as ONNX Runtime lays them.
std::int64_t worst_of_conv(const Tensor& integers, std::int64_t top) {
  const auto data = integers.data<std::int8_t>();
  const auto out = static_cast<std::size_t>(integers.shape()[0]);
  const auto in = static_cast<std::size_t>(integers.shape()[1]);
  const std::size_t taps = data.size() / out / in;
  std::int64_t result = 0;
  for (std::size_t o = 0; o < out; ++o) {
    std::vector<std::int64_t> sum;
    for (std::size_t t = 0; t < taps; ++t) {
      for (std::size_t i = 0; i < in; ++i) sum.push_back(data[(o * in + i) * taps + t]);
    }
    for (std::size_t k = 1; k < sum.size(); ++k) {
      result = std::max(result, worst(sum[k - 1], sum[k], top));
    }
  }
  return result;
}

TEST(Saturation, NoPairOfAConvolutionLeaves16Bits) {
  Layer layer({8, 6, 3, 3});
  ASSERT_GT(worst_of_conv(layer.integers(), 255), 32767) << "it would saturate";
  const auto changed = avoid_saturation(layer.model, layer.plan, layer.solution);
  EXPECT_LE(worst_of_conv(layer.integers(), 255), 32767);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].node, "layer");
  EXPECT_EQ(changed[0].channels, 8);
  EXPECT_GT(changed[0].changed, 0);
  EXPECT_LE(changed[0].factor, 2.1);
  EXPECT_TRUE(avoid_saturation(layer.model, layer.plan, layer.solution).empty())
      << "once is enough";
}

TEST(Saturation, NoPairOfAProductLeaves16Bits) {
  Layer layer({12, 5}, "MatMul");
  avoid_saturation(layer.model, layer.plan, layer.solution);
  const Tensor integers = layer.integers();
  const auto data = integers.data<std::int8_t>();
  for (std::size_t column = 0; column < 5; ++column) {
    for (std::size_t k = 1; k < 12; ++k) {
      EXPECT_LE(worst(data[(k - 1) * 5 + column], data[k * 5 + column], 255), 32767);
    }
  }
}

TEST(Saturation, OnlyChannelsThatNeedItChange) {
  Layer layer({2, 2, 1, 1});
  Value& weight = layer.graph()[layer.id("w")];
  weight.constant = Tensor::of<float>({2, 2, 1, 1}, {1, 0.9F, 1, -0.9F});
  const std::vector<float> before = layer.grid().scale;
  const auto changed = avoid_saturation(layer.model, layer.plan, layer.solution);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].changed, 1);
  EXPECT_GT(layer.grid().scale[0], before[0]);
  EXPECT_EQ(layer.grid().scale[1], before[1]) << "its two products pull against each other";
}

TEST(Saturation, ClippedWeightsStayClipped) {
  Layer layer({2, 2, 1, 1});
  Value& weight = layer.graph()[layer.id("w")];
  weight.constant = Tensor::of<float>({2, 2, 1, 1}, {40, 40, 0.9F, 0.8F});
  avoid_saturation(layer.model, layer.plan, layer.solution);
  EXPECT_LE(worst_of_conv(layer.integers(), 255), 32767);
}

TEST(Saturation, LayersThatCannotSaturateStay) {
  for (Layer layer : {Layer({8, 6, 3, 3}, "Conv", 7), Layer({8, 6, 3, 3}, "Conv", 8, "vnni"),
                      Layer({8, 6, 3, 3}, "Conv", 8, "")}) {
    const QuantParams before = layer.grid();
    EXPECT_TRUE(avoid_saturation(layer.model, layer.plan, layer.solution).empty());
    EXPECT_EQ(layer.grid(), before);
  }
}

TEST(Saturation, DepthwiseKernelsAddIn32Bits) {
  Builder net(13);
  net.input("x", {{1}, {2}, {8}, {8}}).numbers("w", {2, 1, 1, 2}, {1, 1, 1, 1});
  net.node("Conv", {"x", "w"}, {"y"}).set("group", std::int64_t{2});
  net.output("y");
  infer_types(net.model);
  QuantConfig config;
  config.isa = "avx2";
  const QuantPlan plan = make_plan(net.model, config);
  QuantSolution solution;
  solution.values["x"] = choose_params(plan.values.at("x").spec, {Range{-1, 3}});
  solution.values["y"] = solution.values["x"];
  solution.weights[{"y", 1}] = choose_params(plan.weights[0].spec, {Range{-1, 1}, Range{-1, 1}});
  EXPECT_TRUE(avoid_saturation(net.model, plan, solution).empty());
}

TEST(Saturation, WhatIsWrittenIsSafe) {
  Layer layer({8, 6, 3, 3});
  const Model model = insert_qdq(layer.model, layer.plan, layer.solution);
  const Tensor& written = *model.graph.constant(model.graph.find("w_quantized"));
  EXPECT_LE(worst_of_conv(written, 255), 32767);
}

}  // namespace
}  // namespace quench
