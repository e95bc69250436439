// SPDX-License-Identifier: Apache-2.0
// Q/DQ graphs as integer operators.
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;
using testing::Network;

std::string ops(const Model& model) {
  std::string text;
  for (const Node& node : model.graph.nodes) {
    text +=
        (text.empty() ? "" : " ") + (node.domain.empty() ? "" : node.domain + ".") + node.op_type;
  }
  return text;
}

TEST(ToQoperator, ALayerTakesItsActivationAndBias) {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").output("z");
  const Model model = to_qoperator(net.quantized());
  EXPECT_EQ(Builder::text_of(model.graph),
            "QuantizeLinear(x,x_scale,x_zero_point)->x_QuantizeLinear_Output "
            "QLinearConv(x_QuantizeLinear_Output,x_scale,x_zero_point,y_w_quantized,y_w_scale,"
            "y_w_zero_point,z_scale,z_zero_point,y_b_quantized)->z_QuantizeLinear_Output "
            "DequantizeLinear(z_QuantizeLinear_Output,z_scale,z_zero_point)->z");
  EXPECT_EQ(model.opset("com.microsoft"), 0) << "nothing of that domain is used";
}

TEST(ToQoperator, ResidualsConcatsPoolsAndMovers) {
  Network net;
  net.conv("x", "a").conv("a", "b").then("Add", {"a", "b"}, "sum");
  net.node("Concat", {"a", "sum"}, {"both"}).set("axis", std::int64_t{1});
  net.then("GlobalAveragePool", {"both"}, "pooled").then("Flatten", {"pooled"}, "flat");
  net.numbers("w", {4, 3}, std::vector<float>(12, 0.5F)).numbers("c", {3}, {1, 2, 3});
  net.then("Gemm", {"flat", "w", "c"}, "out").output("out");
  const Model model = to_qoperator(net.quantized());
  EXPECT_EQ(ops(model),
            "QuantizeLinear QLinearConv QLinearConv com.microsoft.QLinearAdd "
            "com.microsoft.QLinearConcat com.microsoft.QLinearGlobalAveragePool Flatten "
            "com.microsoft.QGemm");
  EXPECT_EQ(model.opset("com.microsoft"), 1);
  EXPECT_EQ(model.graph[model.graph.find("flat_QuantizeLinear_Output")].type.dtype, DType::UInt8);
}

TEST(ToQoperator, AProductReadInFloatGivesFloat) {
  Builder net(13);
  net.input("x", {{1}, {5}, {4}}).numbers("w", {4, 3}, std::vector<float>(12, 0.5F));
  net.node("MatMul", {"x", "w"}, {"y"});
  net.output("y");
  infer_types(net.model);
  const QuantPlan plan = make_plan(net.model, {});
  QuantSolution solution;
  solution.values["x"] = choose_params(plan.values.at("x").spec, {Range{.min = -1, .max = 1}});
  solution.weights[{"y", 1}] =
      choose_params(plan.weights[0].spec, std::vector<Range>(3, Range{.min = -1, .max = 1}));
  const Model model = to_qoperator(insert_qdq(net.model, plan, solution));
  EXPECT_EQ(ops(model), "QuantizeLinear com.microsoft.MatMulIntegerToFloat");
  EXPECT_EQ(model.graph[model.graph.outputs[0]].name, "y");
}

TEST(ToQoperator, WhatItsKernelCannotReadKeepsQdq) {
  Network net;
  net.conv("x", "y").output("y");
  Model wrong = net.quantized();
  Value& scale = wrong.graph[wrong.graph.find("y_b_scale")];
  scale.constant = Tensor::of<float>({2}, {1, 1});
  EXPECT_EQ(ops(to_qoperator(wrong)), ops(wrong)) << "the bias is on another grid";

  Model spied = net.quantized();
  Graph& graph = spied.graph;
  Node& spy = graph.add_node("Neg", {graph.find("y_float")}, {"spied"});
  graph.outputs.push_back(spy.outputs[0]);
  EXPECT_EQ(ops(to_qoperator(spied)), ops(spied)) << "its float result is read elsewhere";
}

TEST(ToQoperator, NarrowActivationsKeepTheirClip) {
  Network net;
  net.conv("x", "y").conv("y", "out").output("out");
  QuantConfig config;
  config.global.activation_bits = 5;
  const Model model = net.quantized(config);
  EXPECT_EQ(ops(to_qoperator(model)), ops(model));
}

TEST(ToQoperator, AFloatModelStaysAsItIs) {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").output("z");
  infer_types(net.model);
  EXPECT_EQ(ops(to_qoperator(net.model)), "Conv Relu");
}

}  // namespace
}  // namespace quench
