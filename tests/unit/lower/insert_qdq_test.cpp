// SPDX-License-Identifier: Apache-2.0
// Q/DQ where runtimes want them.
#include <algorithm>

#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;
using testing::Network;

std::size_t count(const Model& model, const std::string& op) {
  return static_cast<std::size_t>(std::ranges::count(model.graph.nodes, op, &Node::op_type));
}

TEST(InsertQdq, ALayerWithItsActivation) {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").output("z");
  const Model model = net.quantized();
  EXPECT_EQ(Builder::text_of(model.graph),
            "QuantizeLinear(x,x_scale,x_zero_point)->x_QuantizeLinear_Output "
            "DequantizeLinear(x_QuantizeLinear_Output,x_scale,x_zero_point)"
            "->x_DequantizeLinear_Output "
            "DequantizeLinear(y_w_quantized,y_w_scale,y_w_zero_point)"
            "->y_w_DequantizeLinear_Output "
            "DequantizeLinear(y_b_quantized,y_b_scale,y_b_zero_point)"
            "->y_b_DequantizeLinear_Output "
            "Conv(x_DequantizeLinear_Output,y_w_DequantizeLinear_Output,"
            "y_b_DequantizeLinear_Output)->y "
            "Relu(y)->z_float "
            "QuantizeLinear(z_float,z_scale,z_zero_point)->z_QuantizeLinear_Output "
            "DequantizeLinear(z_QuantizeLinear_Output,z_scale,z_zero_point)->z");
}

TEST(InsertQdq, BiasIsInt32OnTheGridOfTheProducts) {
  Network net;
  net.conv("x", "y").output("y");
  const Model model = net.quantized();
  const Graph& graph = model.graph;
  const float input = to_float(*graph.constant(graph.find("x_scale")))[0];
  const auto weight = to_float(*graph.constant(graph.find("y_w_scale")));
  const auto bias = to_float(*graph.constant(graph.find("y_b_scale")));
  ASSERT_EQ(bias.size(), 2U);
  EXPECT_FLOAT_EQ(bias[0], input * weight[0]);
  const Tensor& integers = *graph.constant(graph.find("y_b_quantized"));
  ASSERT_EQ(integers.dtype(), DType::Int32);
  EXPECT_NEAR(static_cast<float>(integers.data<std::int32_t>()[1]) * bias[1], -1, bias[1]);
}

TEST(InsertQdq, ABiasThatCameAfterThePlanIsInt32Too) {
  Network net;
  net.conv("x", "y", false).output("y");
  const QuantPlan plan = net.plan();
  net.numbers("late", {2}, {0.5F, -0.5F});
  net.graph().nodes[0].inputs.push_back(net.id("late"));
  const Model model = insert_qdq(net.model, plan, net.solve(plan));
  EXPECT_EQ(model.graph.constant(model.graph.find("late_quantized"))->dtype(), DType::Int32);
}

TEST(InsertQdq, OneQAndADqForEachReader) {
  Network net;
  net.conv("x", "y").conv("y", "a").conv("y", "b").then("Add", {"a", "b"}, "sum");
  net.conv("sum", "out").output("out");
  const Model model = net.quantized();
  EXPECT_EQ(count(model, "QuantizeLinear"), 6U);
  EXPECT_NE(model.graph.find("y_DequantizeLinear_Output_1"), kNoValue);
}

/// As PaddleSlim does where types are listed: what a Relu reads keeps its numbers and notes a
/// scale.
TEST(InsertQdq, RoundsForLayersOnly) {
  Network net;
  net.conv("x", "y").then("Add", {"x", "y"}, "sum").conv("sum", "out").output("out");
  net.output("y");
  QuantConfig config;
  config.target = "paddle";
  config.quantizable_op_type = {"Conv"};
  config.round_for_layers_only = true;
  const Model model = net.quantized(config);
  EXPECT_EQ(count(model, "QuantizeLinear"), 2U);  // what both convolutions read
  const Uses uses(model.graph);
  for (const Node& node : model.graph.nodes) {
    if (node.op_type != "Add") continue;
    const NodeId noted = uses.producer[static_cast<std::size_t>(node.inputs[0])];
    ASSERT_GE(noted, 0);
    const Node& note = model.graph.nodes[static_cast<std::size_t>(noted)];
    EXPECT_EQ(note.op_type, "Identity");
    EXPECT_GT(note.get_float("noted_scale", 0), 0);
    EXPECT_EQ(model.graph[note.inputs[0]].name, "x");
    EXPECT_EQ(model.graph[node.inputs[1]].name, "y");
  }
}

TEST(InsertQdq, SharedWeightsAreStoredOnce) {
  Network net;
  net.numbers("w", {2, 2, 1, 1}, {1, 2, 3, 4});
  net.then("Conv", {"x", "w"}, "y").then("Conv", {"y", "w"}, "out").output("out");
  const Model model = net.quantized();
  EXPECT_NE(model.graph.find("w_quantized"), kNoValue);
  EXPECT_EQ(model.graph.find("w_quantized_1"), kNoValue);
  EXPECT_EQ(model.graph.find("w"), kNoValue) << "the float weight is gone";
}

TEST(InsertQdq, ABiasThatWouldOverflowWidensTheGrid) {
  Network net;
  net.numbers("w", {2, 2, 1, 1}, {1e-6F, 1e-6F, 1, 1}).numbers("b", {2}, {3e4F, 1});
  net.then("Conv", {"x", "w", "b"}, "y").output("y");
  const QuantPlan plan = net.plan();
  QuantSolution solution = net.solve(plan);
  solution.weights.begin()->second.scale = {1e-8F, 1e-2F};
  legalize(net.model, plan, solution);
  const auto& grid = solution.weights.begin()->second;
  const double input = solution.values.at("x").scale[0];
  EXPECT_LE(3e4 / (input * grid.scale[0]), 0.5 * 2147483647.0);
  EXPECT_EQ(grid.scale[1], 1e-2F);
  const QuantSolution once = solution;
  legalize(net.model, plan, solution);
  EXPECT_EQ(solution.weights, once.weights);
  EXPECT_EQ(solution.values, once.values);
}

TEST(InsertQdq, GridsStayInsideAClip) {
  Network net;
  net.number("low", 0).number("high", 6);
  net.conv("x", "y").then("Clip", {"y", "low", "high"}, "z").conv("z", "out").output("out");
  const QuantPlan plan = net.plan();
  QuantSolution solution = net.solve(plan);
  solution.values["z"] = choose_params(plan.values.at("z").spec, {Range{.min = -1, .max = 7}});
  legalize(net.model, plan, solution);
  EXPECT_EQ(solution.values["z"].zero_point[0], 0);
  EXPECT_LE(solution.values["z"].scale[0] * 255.0F, 6.0F);
  EXPECT_GT(solution.values["z"].scale[0] * 255.0F, 5.99F);
}

TEST(InsertQdq, NarrowGridsAreCutBeforeTheQ) {
  Network net;
  net.conv("x", "y").output("y");
  QuantConfig config;
  config.global.activation_bits = 5;
  const Model model = net.quantized(config);
  EXPECT_EQ(count(model, "Clip"), 2U);
}

TEST(InsertQdq, SixteenBitsRaiseTheOpset) {
  Network net;
  net.conv("x", "y").output("y");
  QuantConfig config;
  config.global.activation_bits = 16;
  EXPECT_EQ(net.quantized(config).opset(), 21);
  EXPECT_EQ(net.quantized().opset(), 13);
}

TEST(InsertQdq, AModelWithoutLayersStaysAsItIs) {
  Network net;
  net.then("Relu", {"x"}, "y").output("y");
  EXPECT_EQ(Builder::text_of(net.quantized().graph), "Relu(x)->y");
}

}  // namespace
}  // namespace quench
