// SPDX-License-Identifier: Apache-2.0
// What a runtime will make of a quantised model, and why not more.
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Network;

LintLine line_of(const Model& model, const std::string& node) {
  for (LintLine& line : lint(model, "onnxruntime")) {
    if (line.node == node) return line;
  }
  ADD_FAILURE() << "no line for " << node;
  return {};
}

Network chain() {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").conv("z", "out").output("out");
  return net;
}

TEST(Lint, OurOwnOutputRunsOnIntegers) {
  const Model model = chain().quantized();
  for (const char* name : {"conv_y", "z", "conv_out"}) {
    EXPECT_TRUE(line_of(model, name).integer) << name << line_of(model, name).reason;
  }
}

TEST(Lint, AFloatModelSaysWhatIsMissing) {
  Network net = chain();
  const LintLine line = line_of(net.model, "conv_y");
  EXPECT_FALSE(line.integer);
  EXPECT_NE(line.reason.find("'x'"), std::string::npos) << line.reason;
}

TEST(Lint, NoticesASecondReader) {
  Model model = chain().quantized();
  Graph& graph = model.graph;
  Node& spy = graph.add_node("Neg", {graph.find("z")}, {"spied"});
  graph.outputs.push_back(spy.outputs[0]);
  EXPECT_FALSE(line_of(model, "conv_y").integer);
}

TEST(Lint, NoticesAWrongBiasScale) {
  Model model = chain().quantized();
  Graph& graph = model.graph;
  Value& scale = graph[graph.find("y_b_scale")];
  std::vector<float> numbers = to_float(*scale.constant);
  numbers[1] *= 1.05F;
  scale.constant = Tensor::of<float>({2}, numbers);
  EXPECT_NE(line_of(model, "conv_y").reason.find("bias"), std::string::npos);
}

TEST(Lint, NoticesAZeroPointThatKeepsTheRelu) {
  Model model = chain().quantized();
  Graph& graph = model.graph;
  graph[graph.find("z_zero_point")].constant = Tensor::scalar<std::uint8_t>(3);
  EXPECT_FALSE(line_of(model, "conv_y").integer);
}

}  // namespace
}  // namespace quench
