// SPDX-License-Identifier: Apache-2.0
// Operators whose form or meaning changed.
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;
using testing::error_of;

using Ints = std::vector<std::int64_t>;

Builder image(std::int64_t opset) {
  Builder net(opset);
  net.input("x", {{2}, {3}, {4}, {4}});
  return net;
}

std::string lifted(Builder net, std::int64_t opset) {
  net.output("y");
  lift_opset(net.model, opset);
  verify(net.model);
  infer_types(net.model);
  EXPECT_EQ(net.model.opset(), opset);
  return net.text();
}

TEST(LiftOpset, ClipGetsInputs) {
  Builder net = image(9);
  net.node("Clip", {"x"}, {"y"}).set("max", 6.0F);
  EXPECT_EQ(lifted(net, 13), "Clip(x,_,y_max)->y");
}

TEST(LiftOpset, AxesBecomeInputs) {
  Builder net = image(11);
  net.node("ReduceSum", {"x"}, {"s"}).set("axes", Ints{2});
  net.node("ReduceMean", {"s"}, {"m"}).set("axes", Ints{3});
  net.node("Squeeze", {"m"}, {"y"}).set("axes", Ints{2, 3});
  EXPECT_EQ(lifted(net, 13), "ReduceSum(x,s_axes)->s ReduceMean(s)->m Squeeze(m,y_axes)->y");
  EXPECT_EQ(lifted(net, 18), "ReduceSum(x,s_axes)->s ReduceMean(s,m_axes)->m Squeeze(m,y_axes)->y");
}

TEST(LiftOpset, SoftmaxOverSeveralAxesIsFlattened) {
  Builder net = image(11);
  net.node("Softmax", {"x"}, {"y"});
  EXPECT_EQ(lifted(net, 13),
            "Shape(x)->y_shape Flatten(x)->y_flat_input Softmax(y_flat_input)->y_flat "
            "Reshape(y_flat,y_shape)->y");
}

TEST(LiftOpset, SoftmaxOverTheLastAxisStays) {
  Builder net = image(11);
  net.node("Softmax", {"x"}, {"y"}).set("axis", std::int64_t{3});
  EXPECT_EQ(lifted(net, 13), "Softmax(x)->y");
}

TEST(LiftOpset, UpsampleBecomesResize) {
  Builder net = image(7);
  net.node("Upsample", {"x"}, {"y"}).set("scales", std::vector<float>{1, 1, 2, 2});
  net.output("y");
  lift_opset(net.model, 13);
  EXPECT_EQ(net.text(), "Resize(x,_,y_scales)->y");
  EXPECT_EQ(net.graph().nodes[0].get_string("coordinate_transformation_mode", ""), "asymmetric");
}

TEST(LiftOpset, ResizeLeavesOutWhatIsEmpty) {
  Builder net = image(11);
  net.numbers("none", {0}, {});
  net.graph().add_constant("sizes", Tensor::of<std::int64_t>({4}, Ints{2, 3, 8, 8}));
  net.node("Resize", {"x", "none", "none", "sizes"}, {"y"}).set("mode", std::string("nearest"));
  EXPECT_EQ(lifted(net, 13), "Resize(x,_,_,sizes)->y");
}

TEST(LiftOpset, ResizeThatShrinksAndGrowsTakesTwoSteps) {
  Builder net = image(10);
  net.numbers("scales", {4}, {1, 1, 0.5F, 2});
  net.node("Resize", {"x", "scales"}, {"y"}).set("mode", std::string("nearest"));
  net.output("y");
  lift_opset(net.model, 13);
  ASSERT_EQ(net.text(),
            "Resize(x,_,y_shrinking_scales)->y_shrunk Resize(y_shrunk,_,y_growing_scales)->y");
  const Graph& graph = net.graph();
  EXPECT_EQ(graph.nodes[0].get_string("nearest_mode", ""), "ceil");
  EXPECT_EQ(graph.nodes[1].get_string("nearest_mode", ""), "floor");
  EXPECT_EQ(to_float(*graph.constant(graph.nodes[0].inputs[2])),
            (std::vector<float>{1, 1, 0.5F, 1}));
  EXPECT_EQ(to_float(*graph.constant(graph.nodes[1].inputs[2])), (std::vector<float>{1, 1, 1, 2}));
}

TEST(LiftOpset, SliceSplitAndPadGetInputs) {
  Builder net = image(9);
  Node& slice = net.node("Slice", {"x"}, {"a"});
  slice.set("starts", Ints{1});
  slice.set("ends", Ints{3});
  net.node("Pad", {"a"}, {"y"}).set("pads", Ints{0, 0, 1, 1, 0, 0, 1, 1});
  EXPECT_EQ(lifted(net, 13), "Slice(x,a_starts,a_ends)->a Pad(a,y_pads)->y");
}

TEST(LiftOpset, FiveOutputsOfABatchNormalisationStayTraining) {
  Builder net = image(8);
  net.numbers("s", {3}, {1, 1, 1});
  net.node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y", "m", "v", "sm", "sv"});
  // Inference would refuse the statistics without training_mode.
  EXPECT_EQ(lifted(net, 15), "BatchNormalization(x,s,s,s,s)->y,m,v");
}

TEST(LiftOpset, RefusesWhatCannotBeLifted) {
  Builder net = image(7);
  net.numbers("s", {3}, {1, 1, 1});
  Node& norm = net.node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y"});
  norm.name = "norm";
  norm.set("spatial", std::int64_t{0});
  net.output("y");
  const auto [kind, text] = error_of([&] { lift_opset(net.model, 13); });
  EXPECT_EQ(kind, ErrorKind::Unsupported);
  EXPECT_NE(text.find("norm"), std::string::npos) << text;
  net.model.opsets[""] = 6;
  EXPECT_EQ(error_of([&] { lift_opset(net.model, 13); }).first, ErrorKind::Unsupported);
}

}  // namespace
}  // namespace quench
