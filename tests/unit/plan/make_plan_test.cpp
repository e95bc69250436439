// SPDX-License-Identifier: Apache-2.0
// What is decided for nodes and values.
#include <cmath>
#include <limits>

#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;
using testing::is_float;
using testing::is_integer;
using testing::Network;
using Kind = ValuePlan::Kind;

TEST(Plan, AbsorbsAnActivation) {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").conv("z", "out").output("out");
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_integer(net.plan_of(plan, "z")));
  EXPECT_EQ(net.plan_of(plan, "z").absorbed_by, "y");
  EXPECT_EQ(plan.values.at("y").kind, Kind::Float);
  EXPECT_EQ(plan.values.at("z").kind, Kind::Observed);
  EXPECT_EQ(plan.values.at("z").bounds->min, 0);
  EXPECT_FALSE(plan.values.at("z").spec.is_signed);
  EXPECT_EQ(plan.values.at("x").kind, Kind::Observed) << "inputs are quantised at the entry";
  EXPECT_EQ(plan.values.at("out").kind, Kind::Observed) << "a Conv needs a Q behind it";
  ASSERT_EQ(plan.weights.size(), 2U);
  EXPECT_EQ(plan.weights[0].spec.axis, 0);
  EXPECT_TRUE(plan.weights[0].spec.symmetric);
  EXPECT_TRUE(plan.nodes.at("y").quantize_bias);
}

TEST(Plan, FirstAndLastActivationsKeepEightBits) {
  Network net;
  net.conv("x", "y").conv("y", "z").conv("z", "out").output("out");
  QuantConfig config;
  config.global.activation_bits = 4;
  const QuantPlan plan = net.plan(config);
  EXPECT_EQ(plan.values.at("x").spec.bits, 8);
  EXPECT_EQ(plan.values.at("y").spec.bits, 4);
  EXPECT_EQ(plan.values.at("z").spec.bits, 8) << "the last layer reads it";
  EXPECT_EQ(plan.values.at("out").spec.bits, 8);
  config.by_type["Conv"].activation_bits = 3;
  EXPECT_EQ(net.plan(config).values.at("out").spec.bits, 3) << "unless somebody asks for it";
  config.by_type.clear();
  for (const int bits : {7, 16}) {
    config.global.activation_bits = bits;
    EXPECT_EQ(net.plan(config).values.at("x").spec.bits, bits);
  }
}

/// A spectrum spans many orders of magnitude; 8 bits with one scale span two.
TEST(Plan, LeavesWhatALogarithmReadsInFloat) {
  Network net;
  net.conv("x", "y").conv("y", "power").then("Relu", {"power"}, "floor");
  net.then("Log", {"floor"}, "out").output("out");
  QuantConfig config;
  QuantPlan plan = net.plan(config);
  EXPECT_TRUE(is_integer(net.plan_of(plan, "y"))) << "it does not read this one";
  EXPECT_TRUE(is_float(net.plan_of(plan, "power")));
  EXPECT_NE(net.plan_of(plan, "power").reason.find("logarithm"), std::string::npos);
  config.by_layer["conv_power"].weight_bits = 8;
  EXPECT_TRUE(is_integer(net.plan(config).nodes.at("power"))) << "unless somebody names it";
}

TEST(Plan, HoldsWhileNodesComeAndGo) {
  Network net;
  net.then("Neg", {"x"}, "unread");
  net.conv("x", "y").then("Relu", {"y"}, "z").conv("z", "out").output("out");
  const QuantPlan plan = net.plan();
  const QuantSolution solution = net.solve(plan);
  Network changed = net;
  compact(changed.graph(), {true});  // the node before all others goes
  Node neg;
  neg.op_type = "Neg";
  neg.inputs = {changed.id("z")};
  neg.outputs = {changed.graph().add_fresh("minus_z")};
  auto& nodes = changed.graph().nodes;
  nodes.insert(nodes.begin() + 2, neg);  // and one comes between two layers
  changed.output("minus_z");
  EXPECT_TRUE(is_float(plan.of(changed.graph(), nodes[2])));
  EXPECT_TRUE(is_integer(plan.of(changed.graph(), nodes[3])));
  EXPECT_EQ(plan.result_of("y"), "z");
  const Graph before = insert_qdq(net.model, plan, solution).graph;
  const Graph after = insert_qdq(changed.model, plan, solution).graph;
  // The integers that each input of a layer stands for.
  const auto integers = [](const Graph& graph, const char* layer) {
    std::vector<std::string> names;
    for (const ValueId input : node_called(graph, layer).inputs) {
      names.push_back(graph[node_called(graph, graph[input].name).inputs[0]].name);
    }
    return names;
  };
  for (const char* layer : {"y", "out_float"}) {
    EXPECT_EQ(integers(after, layer).size(), 3U) << layer;
    EXPECT_EQ(integers(after, layer), integers(before, layer)) << layer;
  }
}

TEST(Plan, AnActivationThatSharesItsInputStaysApart) {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "z").then("Add", {"y", "z"}, "sum");
  net.conv("sum", "out").output("out");
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_float(net.plan_of(plan, "z")));
  EXPECT_EQ(plan.values.at("y").kind, Kind::Observed);
  EXPECT_TRUE(is_integer(net.plan_of(plan, "sum")));
}

TEST(Plan, AClipThatCutsOffZeroStaysApart) {
  Network net;
  net.number("low", 0.5F).number("high", 6);
  net.conv("x", "y").then("Clip", {"y", "low", "high"}, "z").conv("z", "out").output("out");
  const QuantPlan plan = net.plan();
  EXPECT_EQ(net.plan_of(plan, "z").absorbed_by, "");
  EXPECT_EQ(plan.values.at("y").kind, Kind::Observed);
}

TEST(Plan, ResidualAddsAndConcatsJoinLayers) {
  Network net;
  net.conv("x", "a").conv("a", "b").then("Add", {"a", "b"}, "sum");
  net.node("Concat", {"a", "sum"}, {"both"}).set("axis", std::int64_t{1});
  net.numbers("w", {1, 4, 1, 1}, {1, 2, 3, 4});
  net.then("Conv", {"both", "w"}, "out").output("out");
  const QuantPlan plan = net.plan();
  for (const char* name : {"sum", "both", "out"}) {
    EXPECT_TRUE(is_integer(net.plan_of(plan, name))) << name;
    EXPECT_EQ(plan.values.at(name).kind, Kind::Observed) << name;
  }
}

TEST(Plan, MoversShareTheGridOfWhatTheyMove) {
  Network net;
  net.conv("x", "y");
  net.node("MaxPool", {"y"}, {"p"}).set("kernel_shape", std::vector<std::int64_t>{2, 2});
  net.conv("p", "z");
  net.then("Flatten", {"z"}, "flat").numbers("w", {18, 3}, std::vector<float>(54, 0.5F));
  net.then("Gemm", {"flat", "w"}, "out").output("out");
  const QuantPlan plan = net.plan();
  EXPECT_EQ(plan.values.at("flat").kind, Kind::SharedWith);
  EXPECT_EQ(plan.values.at("flat").source, "z");
  EXPECT_EQ(plan.values.at("p").source, "y");
  EXPECT_FALSE(plan.values.contains("out")) << "a Gemm may give float";
  EXPECT_EQ(plan.weights.back().spec.axis, 1);
}

TEST(Plan, OnnxRuntimesLastMaxPoolIsFasterInFloat) {
  Network net;
  net.conv("x", "y");
  net.node("MaxPool", {"y"}, {"p"}).set("kernel_shape", std::vector<std::int64_t>{2, 2});
  net.then("Flatten", {"p"}, "flat").numbers("w", {18, 3}, std::vector<float>(54, 0.5F));
  net.then("Gemm", {"flat", "w"}, "out").output("out");
  const NodePlan pool = net.plan_of(net.plan(), "p");
  EXPECT_FALSE(is_integer(pool));
  EXPECT_NE(pool.reason.find("last convolution"), std::string::npos) << pool.reason;
}

TEST(Plan, SaysWhatIsConstantOfALookup) {
  Network net;
  net.input("ids", {{3}}, DType::Int64);
  net.numbers("table", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  net.then("Gather", {"table", "ids"}, "rows").output("rows");
  const QuantPlan plan = net.plan();
  EXPECT_EQ(net.plan_of(plan, "rows").reason, "what it picks from is a constant, kept in float");
}

TEST(Plan, WhatJoinsNothingStaysFloat) {
  Network net;
  net.conv("x", "y").then("GlobalAveragePool", {"y"}, "pooled").then("Flatten", {"pooled"}, "out");
  net.output("out");
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_float(net.plan_of(plan, "pooled")));
  EXPECT_FALSE(net.plan_of(plan, "pooled").reason.empty());
  EXPECT_FALSE(plan.values.contains("pooled"));
}

TEST(Plan, AGateIsQuantisedWhereALayerReadsIt) {
  Network net;
  net.conv("x", "y").then("HardSigmoid", {"y"}, "gate").then("Mul", {"y", "gate"}, "z");
  net.conv("z", "out").output("out");
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_float(net.plan_of(plan, "gate")));
  EXPECT_TRUE(is_integer(net.plan_of(plan, "z")));
  EXPECT_EQ(plan.values.at("gate").kind, Kind::Observed);
}

TEST(Plan, SkipsWhatTheUserNames) {
  Network net;
  net.conv("x", "y").conv("y", "z").conv("z", "out").output("out");
  QuantConfig config;
  config.skip_quant_node = {"conv_z"};
  EXPECT_TRUE(is_float(net.plan_of(net.plan(config), "z")));
  config = {};
  config.skip_tensor_list = {"y"};
  const QuantPlan plan = net.plan(config);
  EXPECT_TRUE(is_float(net.plan_of(plan, "y")));
  EXPECT_TRUE(is_float(net.plan_of(plan, "z")));
  EXPECT_TRUE(is_integer(net.plan_of(plan, "out")));
  config = {};
  config.quantizable_op_type = {"Gemm"};
  EXPECT_TRUE(net.plan(config).values.empty());
}

TEST(Plan, SettingsReachTheGrids) {
  Network net;
  net.conv("x", "y").output("y");
  QuantConfig config;
  config.global.activation_observer = "KL";
  config.global.weight_observer = "abs_max";
  config.by_layer["conv_y"].weight_bits = 4;
  const QuantPlan plan = net.plan(config);
  EXPECT_EQ(plan.values.at("x").spec.observer, "KL");
  EXPECT_EQ(plan.weights[0].spec.observer, "abs_max");
  EXPECT_EQ(plan.weights[0].spec.axis, -1) << "abs_max is one grid a layer";
  EXPECT_EQ(plan.weights[0].spec.bits, 4);
}

TEST(Plan, TensorRtLeavesTheLayerBranchOfAResidualFloat) {
  Builder net(13);
  net.input("x", {{1}, {16}, {4}, {4}});
  net.numbers("w", {16, 16, 3, 3}, std::vector<float>(2304, 0.1F));
  for (const auto& [in, out] : {std::pair("x", "a"), std::pair("a", "b")}) {
    net.node("Conv", {in, "w"}, {out}).set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  }
  net.node("Add", {"b", "a"}, {"sum"});
  net.node("Conv", {"sum", "w"}, {"out"});
  net.output("out");
  infer_types(net.model);
  QuantConfig config;
  config.target = "tensorrt";
  const QuantPlan plan = make_plan(net.model, config);
  EXPECT_EQ(plan.values.at("a").kind, Kind::Observed);
  EXPECT_FALSE(plan.values.contains("b"));
  EXPECT_FALSE(plan.values.contains("out"));
  EXPECT_TRUE(plan.values.at("a").spec.symmetric && plan.values.at("a").spec.is_signed);
}

TEST(Plan, RefusesWeightsThatAreNoNumbers) {
  for (const float number : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const char* which : {"y_w", "y_b"}) {
      Network net;
      net.conv("x", "y").output("y");
      net.graph()[net.id(which)].constant->mutable_data<float>()[1] = number;
      const auto [kind, text] = testing::error_of([&] { (void)net.plan(); });
      EXPECT_EQ(kind, ErrorKind::BadModel);
      EXPECT_NE(text.find(which), std::string::npos) << text;
    }
  }
  // A layer that stays in float may hold them.
  Network net;
  net.conv("x", "y").conv("y", "z").output("z");
  net.graph()[net.id("y_w")].constant->mutable_data<float>()[1] = std::nanf("");
  QuantConfig config;
  config.by_layer["conv_y"].skip = true;
  EXPECT_TRUE(is_float(net.plan_of(net.plan(config), "y")));
}

}  // namespace
}  // namespace quench
