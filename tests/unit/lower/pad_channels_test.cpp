// SPDX-License-Identifier: Apache-2.0
// Channels of zeros around depthwise convolutions: more of them, and the same results.
#include "unit/tune/networks.h"

namespace quench::testing {
namespace {

/// x -> conv "a" (2 channels to 3) -> hard-swish -> depthwise "d" -> gated by its own means ->
/// "out".
struct Mobile : Network {
  explicit Mobile(std::int64_t group = 3) {
    filled("a_w", {3, 2, 1, 1}, 0.9F);
    numbers("a_b", {3}, {0.25F, -1, 0.5F});
    node("Conv", {"x", "a_w", "a_b"}, {"a"}).name = "conv_a";
    node("HardSigmoid", {"a"}, {"gate"}).set("alpha", 1.0F / 6);
    then("Mul", {"a", "gate"}, "m");
    filled("d_w", {3, 3 / group, 3, 3}, 0.4F);
    numbers("d_b", {3}, {0.1F, 0.2F, -0.3F});
    Node& depthwise = node("Conv", {"m", "d_w", "d_b"}, {"d"});
    depthwise.name = "conv_d";
    depthwise.set("group", group);
    depthwise.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    then("GlobalAveragePool", {"d"}, "mean");
    filled("e_w", {3, 3, 1, 1}, 0.7F);
    node("Conv", {"mean", "e_w"}, {"e"}).name = "conv_e";
    then("Sigmoid", {"e"}, "s").then("Mul", {"d", "s"}, "weighed");
    filled("out_w", {2, 3, 1, 1}, 0.8F);
  }
  Mobile& finish() {
    node("Conv", {"weighed", "out_w"}, {"out"}).name = "conv_out";
    output("out");
    infer_types(model);
    return *this;
  }
  void filled(const std::string& name, const Shape& shape, float scale) {
    std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = scale * std::cos(static_cast<float>(5 * i + 2));
    }
    numbers(name, shape, values);
  }
  Model lowered(const QuantConfig& config = {}) const {
    const QuantPlan plan = make_plan(model, config);
    return insert_qdq(model, plan, solved(model, plan, {batch(0), batch(1), batch(2)}));
  }
};

std::int64_t channels(const Model& model, const std::string& value) {
  const ValueId id = model.graph.find(value);
  return id == kNoValue ? -1 : (*model.graph[id].type.shape)[1].value;
}

Model padded(Model model, std::int64_t multiple) {
  pad_channels(model, multiple);
  return model;
}

TEST(PadChannels, ResultsAreTheSameToTheLastBit) {
  const Model plain = Mobile().finish().lowered();
  const Model wide = padded(plain, 16);
  for (const char* value : {"a", "m", "d", "mean", "e", "weighed"}) {
    EXPECT_EQ(channels(plain, value), 3) << value;
    EXPECT_EQ(channels(wide, value), 16) << value;
  }
  EXPECT_EQ(channels(wide, "out"), 2);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(run(plain, batch(i)), run(wide, batch(i))) << i;
  const Model integers = to_qoperator(wide);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(run(plain, batch(i)), run(integers, batch(i))) << i;
}

TEST(PadChannels, EveryLayerStillRunsOnIntegers) {
  const Model wide = padded(Mobile().finish().lowered(), 16);
  for (const LintLine& line : lint(wide, "onnxruntime")) {
    if (line.op_type == "Conv") {
      EXPECT_EQ(line.reason, "") << line.node;
    }
  }
}

TEST(PadChannels, LeavesEnoughChannelsAlone) {
  const Model plain = Mobile().finish().lowered();
  EXPECT_EQ(dump(padded(plain, 3)), dump(plain));
  EXPECT_EQ(dump(padded(plain, 1)), dump(plain));
  const Model dense = Mobile(1).finish().lowered();
  EXPECT_EQ(dump(padded(dense, 16)), dump(dense)) << "no depthwise convolution";
}

TEST(PadChannels, LeavesWhatSomethingElseReads) {
  Mobile seen;
  seen.finish().output("d");
  EXPECT_EQ(channels(padded(seen.lowered(), 16), "m"), 3) << "a result of the model";
  Mobile flat;
  flat.node("Flatten", {"m"}, {"flat"});
  flat.finish().output("flat");
  EXPECT_EQ(channels(padded(flat.lowered(), 16), "m"), 3) << "a Flatten mixes channels";
  Mobile scaled;
  scaled.numbers("by", {1, 3, 1, 1}, {1, 2, 3});
  scaled.then("Mul", {"weighed", "by"}, "more");
  scaled.filled("more_w", {2, 3, 1, 1}, 1.0F);
  scaled.then("Conv", {"more", "more_w"}, "second");
  scaled.finish().output("second");
  EXPECT_EQ(channels(padded(scaled.lowered(), 16), "d"), 3) << "a constant for each channel";
}

TEST(PadChannels, LeavesSumsOfFloats) {
  QuantConfig config;
  config.skip_quant_node = {"conv_out"};
  const Model plain = Mobile().finish().lowered(config);
  EXPECT_EQ(channels(padded(plain, 16), "weighed"), 3);
}

TEST(PadChannels, LeavesWeightsWithZeroPoints) {
  Model plain = Mobile().finish().lowered();
  Graph& graph = plain.graph;
  graph[graph.find("out_w_zero_point")].constant = Tensor::of<std::int8_t>({2}, {0, 5});
  EXPECT_EQ(channels(padded(plain, 16), "weighed"), 3);
}

}  // namespace
}  // namespace quench::testing
