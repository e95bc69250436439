// SPDX-License-Identifier: Apache-2.0
// Channels of zeros around depthwise convolutions: more of them, and the same results.
#include "unit/lower/mobile.h"

namespace quench::testing {
namespace {

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
