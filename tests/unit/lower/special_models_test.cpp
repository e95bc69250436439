// SPDX-License-Identifier: Apache-2.0
// Models that are not a plain chain of float layers: quantised as they should be, or left alone
// with the reason.
#include <algorithm>

#include "quench/quantize.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::add_if_reading;
using testing::Builder;
using testing::dims;
using testing::is_float;
using testing::is_integer;
using testing::Network;

std::size_t count(const Model& model, const std::string& op) {
  return static_cast<std::size_t>(std::ranges::count(model.graph.nodes, op, &Node::op_type));
}

/// The node that makes a value.
const Node& maker(const Model& model, const std::string& value) {
  const ValueId id = model.graph.find(value);
  const NodeId node = Uses(model.graph).producer[static_cast<std::size_t>(id)];
  return model.graph.nodes[static_cast<std::size_t>(node)];
}

TEST(SpecialModels, SeveralInputsEachHaveAGrid) {
  Network net;
  net.input("other", dims({1, 2, 4, 4}));
  net.conv("x", "a").conv("other", "b").then("Add", {"a", "b"}, "sum").conv("sum", "y").output("y");
  const Model model = net.quantized();
  for (const char* name : {"x_scale", "other_scale"}) {
    EXPECT_NE(model.graph.find(name), kNoValue) << name;
  }
  EXPECT_EQ(model.graph.inputs.size(), 2U);
  EXPECT_EQ(count(model, "QuantizeLinear"), 6U);
}

TEST(SpecialModels, OpenDimensionsStayOpen) {
  Builder net(13);
  net.input("x", dims({-1, 2, -1, -1})).numbers("w", {2, 2, 1, 1}, {1, -2, 3, 4});
  net.node("Conv", {"x", "w"}, {"y"});
  net.output("y");
  infer_types(net.model);
  const QuantPlan plan = make_plan(net.model, {});
  QuantSolution solution;
  for (const char* name : {"x", "y"}) {
    solution.values[name] = choose_params(plan.values.at(name).spec, {Range{-1, 1}});
  }
  solution.weights[{"y", 1}] = choose_params(plan.weights[0].spec, {Range{-1, 1}, Range{-4, 4}});
  const Model model = insert_qdq(net.model, plan, solution);
  EXPECT_TRUE(is_integer(plan.nodes.at("y")));
  EXPECT_FALSE(model.graph[model.graph.outputs[0]].type.shape->front().known());
}

TEST(SpecialModels, HalfWeightsThatAreCastAreQuantised) {
  Network net;
  const Tensor half = convert(Tensor::of<float>({2, 2, 1, 1}, {1, -2, 0.5F, 4}), DType::Float16);
  net.constant("half", half);
  net.node("Cast", {"half"}, {"w"}).set("to", std::int64_t{1});
  net.then("Conv", {"x", "w"}, "y").output("y");
  net.model = prepare_for_quantization(std::move(net.model));
  EXPECT_EQ(net.text(), "Conv(x,w_1)->y");
  EXPECT_TRUE(is_integer(net.plan_of(net.plan(), "y")));
}

TEST(SpecialModels, HalfLayersStayWithTheReason) {
  Builder net(13);
  net.input("x", dims({1, 2, 4, 4}), DType::Float16);
  net.constant("w", convert(Tensor::of<float>({1, 2, 1, 1}, {1, 2}), DType::Float16));
  net.node("Conv", {"x", "w"}, {"y"});
  net.output("y");
  infer_types(net.model);
  const QuantPlan plan = make_plan(net.model, {});
  const NodePlan& layer = plan.nodes.at("y");
  EXPECT_TRUE(is_float(layer));
  EXPECT_NE(layer.reason.find("float16"), std::string::npos) << layer.reason;
}

TEST(SpecialModels, AWeightThatFloatNodesReadTooStaysInFloatForThem) {
  Builder net(13);
  net.input("ids", dims({3}), DType::Int64).input("x", dims({3, 4}));
  net.numbers("table", {4, 4}, std::vector<float>(16, 0.5F));
  net.node("Gather", {"table", "ids"}, {"rows"});
  net.node("Add", {"rows", "x"}, {"sum"});
  net.node("MatMul", {"sum", "table"}, {"y"});
  net.output("y");
  infer_types(net.model);
  const QuantPlan plan = make_plan(net.model, {});
  EXPECT_TRUE(is_float(plan.nodes.at("rows"))) << "indices and a constant: nothing to gain";
  EXPECT_TRUE(is_integer(plan.nodes.at("y")));
  QuantSolution solution;
  solution.values["sum"] = choose_params(plan.values.at("sum").spec, {Range{-1, 1}});
  solution.weights[{"y", 1}] =
      choose_params(plan.weights[0].spec, std::vector<Range>(4, Range{-1, 1}));
  const Model model = insert_qdq(net.model, plan, solution);
  EXPECT_EQ(model.graph[maker(model, "rows").inputs[0]].name, "table");
  EXPECT_EQ(model.graph[model.graph.find("ids")].type.dtype, DType::Int64);
}

TEST(SpecialModels, BodiesOfControlFlowStayInFloat) {
  Network net;
  net.conv("x", "y");
  add_if_reading(net, "y", "chosen");
  net.conv("y", "z").output("chosen").output("z");
  const QuantPlan plan = net.plan();
  EXPECT_NE(net.plan_of(plan, "chosen").reason.find("control flow"), std::string::npos);
  const Model model = insert_qdq(net.model, plan, net.solve(plan));
  EXPECT_EQ(maker(model, "y").op_type, "DequantizeLinear")
      << "the body reads 'y' by its name and gets what the integers stand for";
  const Node& branch = maker(model, "chosen");
  EXPECT_EQ(captured_names(branch), (std::vector<std::string>{"y", "y"}));
}

TEST(SpecialModels, QuantisedLayersAreLeftAsTheyAre) {
  Network net;
  net.conv("x", "y").output("y");
  Network again;
  again.model = net.quantized();
  again.conv("y", "z").output("z");
  const QuantPlan plan = again.plan();
  std::vector<std::string> reasons;
  for (const Node& node : again.graph().nodes) {
    if (node.op_type == "Conv") reasons.push_back(plan.of(again.graph(), node).reason);
  }
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_EQ(reasons[0], "it is quantised already");
  EXPECT_EQ(reasons[1], "it is quantised already") << "it reads what a DequantizeLinear makes";
  EXPECT_TRUE(plan.values.empty());
}

TEST(SpecialModels, ALayerBehindQuantisedOnesIsQuantised) {
  Network net;
  net.conv("x", "y").output("y");
  Network again;
  again.model = net.quantized();
  again.then("Tanh", {"y"}, "t").conv("t", "z").output("z");
  const QuantPlan plan = again.plan();
  EXPECT_TRUE(is_integer(again.plan_of(plan, "z")));
  EXPECT_TRUE(plan.values.contains("t"));
}

/// x -> conv a -> BatchNormalization b -> Mul m -> conv c.
Network normalised() {
  Network net;
  net.conv("x", "a", false);
  for (const char* name : {"scale", "shift", "mean", "variance"}) net.numbers(name, {2}, {1, 2});
  net.then("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, "b");
  net.number("two", 2);
  net.then("Mul", {"b", "two"}, "m").conv("m", "c").output("c");
  return net;
}

std::string fused(const FuseOptions& fuse) {
  const Model model = prepare_for_quantization(normalised().model, fuse);
  std::string text;
  for (const Node& node : model.graph.nodes) text += node.op_type + " ";
  return text;
}

TEST(SpecialModels, FuseAndFuseListSayWhatIsFolded) {
  EXPECT_EQ(fused({}), "Conv Conv ");
  EXPECT_EQ(fused({.fuse = false}), "Conv BatchNormalization Mul Conv ");
  EXPECT_EQ(fused({.fuse_list = {{"conv_a", "b"}}}), "Conv Mul Conv ");
  EXPECT_EQ(fused({.fuse_list = {{"conv_a", "b", "m"}}}), "Conv Conv ");
  EXPECT_EQ(fused({.fuse_list = {{"conv_c"}}}), "Conv BatchNormalization Mul Conv ");
}

TEST(SpecialModels, FuseListsThatAreWrongAreRefused) {
  const auto [kind, text] = testing::error_of([] { fused({.fuse_list = {{"conv_aa", "b"}}}); });
  EXPECT_EQ(kind, ErrorKind::BadConfig);
  EXPECT_NE(text.find("did you mean 'conv_a'"), std::string::npos) << text;
  EXPECT_EQ(testing::error_of([] {
              fused({.fuse_list = {{"conv_a", "m"}}});
            }).first,
            ErrorKind::BadConfig);
}

TEST(SpecialModels, ConstantsListedAsInputsAreQuantised) {
  Network net;
  net.conv("x", "y").output("y");
  net.graph().inputs.push_back(net.id("y_w"));
  const Model model = net.quantized();
  EXPECT_EQ(model.graph.inputs.size(), 1U) << "what old exporters list, and nothing reads any more";
}

}  // namespace
}  // namespace quench
