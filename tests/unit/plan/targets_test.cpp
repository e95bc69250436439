// SPDX-License-Identifier: Apache-2.0
// What each target's rules make of a small residual network.
#include <algorithm>
#include <set>

#include "plan/target.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Builder;
using testing::dims;
using Kind = ValuePlan::Kind;

/// x -> conv a -> Relu r -> conv b; b + r -> Relu s; s -> conv c; [c, s] -> conv d -> Softmax y.
struct Residual : Builder {
  Residual() : Builder(13) {
    input("x", dims({1, 16, 8, 8}));
    conv("x", "a", 16);
    node("Relu", {"a"}, {"r"});
    conv("r", "b", 16);
    node("Add", {"b", "r"}, {"sum"});
    node("Relu", {"sum"}, {"s"});
    conv("s", "c", 16);
    node("Concat", {"c", "s"}, {"both"}).set("axis", std::int64_t{1});
    conv("both", "d", 32);
    node("Softmax", {"d"}, {"y"});
    output("y");
    infer_types(model);
  }
  void conv(const std::string& in, const std::string& out, std::int64_t channels) {
    const Shape shape = {16, channels, 3, 3};
    numbers(out + "_w", shape,
            std::vector<float>(static_cast<std::size_t>(*num_elements(shape)), 0.1F));
    numbers(out + "_b", {16}, std::vector<float>(16, 0.5F));
    Node& layer = node("Conv", {in, out + "_w", out + "_b"}, {out});
    layer.name = "conv_" + out;
    layer.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  }
  QuantPlan plan(const std::string& target) {
    QuantConfig config;
    config.target = target;
    return make_plan(model, config);
  }
  Model quantized(const std::string& target) {
    const QuantPlan made = plan(target);
    QuantSolution solution;
    for (const auto& [name, value] : made.values) {
      if (value.kind == Kind::Float) continue;
      solution.values[name] = choose_params(value.spec, {Range{-1, 3}});
    }
    for (const WeightPlan& weight : made.weights) {
      const std::size_t channels = weight.spec.axis < 0 ? 1 : 16;
      solution.weights[weight.key()] =
          choose_params(weight.spec, std::vector<Range>(channels, Range{-1, 1}));
    }
    return insert_qdq(model, made, solution);
  }
};

bool has_grid(const QuantPlan& plan, const std::string& value) {
  const auto found = plan.values.find(value);
  return found != plan.values.end() && found->second.kind != Kind::Float;
}

/// The value whose grid a value has.
std::string root(const QuantPlan& plan, const std::string& value) {
  const ValuePlan& planned = plan.values.at(value);
  return planned.kind == Kind::SharedWith ? planned.source : value;
}

TEST(Targets, EachSaysSomethingOfEveryNode) {
  Residual net;
  for (const TargetInfo& target : all_targets()) {
    const QuantPlan plan = net.plan(std::string(target.name));
    for (const Node& node : net.graph().nodes) {
      const NodePlan& decision = plan.of(net.graph(), node);
      const bool in_float = decision.kind == NodePlan::Kind::Float;
      EXPECT_EQ(in_float, in_float && !decision.reason.empty())
          << target.name << " " << label(net.graph(), node);
    }
    EXPECT_FALSE(target.otherwise.empty()) << target.name;
    std::set<std::pair<std::string_view, plan::Form>> seen;
    for (const TargetOp& op : target.ops) {
      EXPECT_TRUE(seen.emplace(op.op_type, op.form).second)
          << target.name << " lists " << op.op_type;
    }
  }
}

TEST(Targets, LintAgreesWithTheirOwnPlans) {
  Residual net;
  for (const TargetInfo& target : all_targets()) {
    const std::string name(target.name);
    const QuantPlan plan = net.plan(name);
    for (const LintLine& line : lint(net.quantized(name), name)) {
      if (!line.node.starts_with("conv_")) continue;
      EXPECT_TRUE(line.integer) << name << " " << line.node << ": " << line.reason;
    }
    const auto layers = std::ranges::count_if(
        plan.weights, [](const WeightPlan& weight) { return weight.input == 1; });
    EXPECT_EQ(layers, 4) << name;
  }
}

TEST(Targets, TensorRtIsSymmetricWithFloatBiases) {
  Residual net;
  const QuantPlan plan = net.plan("tensorrt");
  for (const auto& [name, value] : plan.values) {
    if (value.kind == Kind::Float) continue;
    EXPECT_TRUE(value.spec.is_signed && value.spec.symmetric) << name;
    EXPECT_EQ(choose_params(value.spec, {Range{-1, 3}}).zero_point[0], 0) << name;
  }
  for (const WeightPlan& weight : plan.weights) {
    EXPECT_TRUE(weight.spec.symmetric && weight.spec.axis == 0);
  }
  for (const auto& [name, node] : plan.nodes) EXPECT_FALSE(node.quantize_bias) << name;
}

TEST(Targets, TensorRtQuantisesTheSkipInputOnly) {
  Residual net;
  const QuantPlan plan = net.plan("tensorrt");
  EXPECT_TRUE(has_grid(plan, "r"));
  EXPECT_FALSE(has_grid(plan, "b")) << "Conv and Add must stay together";
  EXPECT_FALSE(has_grid(plan, "a"));
  EXPECT_FALSE(has_grid(plan, "sum"));
  EXPECT_TRUE(has_grid(plan, "s"));
  EXPECT_FALSE(has_grid(plan, "d")) << "outputs of layers are not quantised";
}

TEST(Targets, ConcatsShareOneGridWhereTheRuntimeWantsIt) {
  Residual net;
  for (const char* target : {"tensorrt", "openvino"}) {
    const QuantPlan plan = net.plan(target);
    EXPECT_EQ(root(plan, "c"), root(plan, "both")) << target;
    EXPECT_EQ(root(plan, "s"), root(plan, "both")) << target;
  }
  const QuantPlan plan = net.plan("onnxruntime");
  EXPECT_NE(root(plan, "c"), root(plan, "both")) << "its kernel rescales";
}

TEST(Targets, OpenVinoHasUnsignedActivationsAndNarrowWeights) {
  Residual net;
  const QuantPlan plan = net.plan("openvino");
  for (const auto& [name, value] : plan.values) {
    if (value.kind == Kind::Float) continue;
    EXPECT_EQ(value.spec.dtype(), DType::UInt8) << name;
  }
  for (const WeightPlan& weight : plan.weights) {
    EXPECT_EQ(weight.spec.q_min(), -127);
    EXPECT_EQ(weight.spec.axis, 0);
  }
  const Model model = net.quantized("openvino");
  EXPECT_EQ(model.graph.find("a_b_quantized"), kNoValue) << "biases stay float";
  EXPECT_FALSE(has_grid(plan, "d"));
}

TEST(Targets, SignalProcessorsHaveOneGridALayerAndNoFloatBetween) {
  Residual net;
  const QuantPlan plan = net.plan("dsp");
  for (const WeightPlan& weight : plan.weights) EXPECT_EQ(weight.spec.axis, -1);
  for (const char* name : {"x", "r", "b", "s", "c", "both", "d"}) {
    EXPECT_TRUE(has_grid(plan, name)) << name;
    EXPECT_EQ(plan.values.at(name).spec.dtype(), DType::UInt8) << name;
  }
  const Model model = net.quantized("dsp");
  EXPECT_EQ(model.graph.constant(model.graph.find("a_b_quantized"))->dtype(), DType::Int32);
}

TEST(Targets, AscendQuantisesInputsOfLayersAndNothingElse) {
  Residual net;
  const QuantPlan plan = net.plan("ascend");
  for (const char* name : {"x", "r", "s", "both"}) EXPECT_TRUE(has_grid(plan, name)) << name;
  for (const char* name : {"a", "b", "sum", "c", "d"}) EXPECT_FALSE(has_grid(plan, name)) << name;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == Kind::Float) continue;
    EXPECT_EQ(value.spec.dtype(), DType::Int8) << name;
  }
  for (const WeightPlan& weight : plan.weights) EXPECT_TRUE(weight.spec.symmetric);
}

TEST(Targets, AscendLeavesNarrowConvolutions) {
  Builder net(13);
  net.input("x", dims({1, 4, 8, 8})).numbers("w", {8, 4, 1, 1}, std::vector<float>(32, 0.5F));
  net.node("Conv", {"x", "w"}, {"y"});
  net.output("y");
  infer_types(net.model);
  QuantConfig config;
  config.target = "ascend";
  EXPECT_FALSE(make_plan(net.model, config).nodes.at("y").reason.empty());
}

TEST(Targets, SharesOfDspHaveAGridOfShares) {
  testing::Network net;
  net.conv("x", "a").then("Softmax", {"a"}, "s").conv("s", "b").output("b");
  QuantConfig config;
  config.target = "dsp";
  const QuantPlan plan = net.plan(config);
  const ValuePlan& shares = plan.values.at("s");
  ASSERT_EQ(shares.kind, Kind::Fixed);
  const QuantParams grid = choose_params(shares.spec, {shares.fixed});
  EXPECT_EQ(grid.scale, std::vector<float>{1.0F / 256});
  EXPECT_EQ(grid.zero_point, std::vector<std::int32_t>{0});
}

/// Whether what an average reads has a scale where only layers are quantised, with a view behind
/// it.
bool average_reads_scaled(const char* target, const char* skipped) {
  testing::Network net;
  net.conv("x", "a").then("Mul", {"a", "a"}, "m").then("GlobalAveragePool", {"m"}, "mean");
  net.then("Flatten", {"mean"}, "flat").numbers("w", {2, 3}, std::vector<float>(6, 0.5F));
  net.then("Gemm", {"flat", "w"}, "out").output("out");
  QuantConfig config;
  config.target = target;
  config.quantizable_op_type = {"Conv", "MatMul", "Gemm"};
  if (*skipped != 0) config.skip_quant_node = {skipped};
  return net.plan(config).values.contains("m");
}

TEST(Targets, PaddleFindsAScaleForWhatAnAverageReads) {
  EXPECT_TRUE(average_reads_scaled("paddle", "")) << "it would take that of the result";
  EXPECT_FALSE(average_reads_scaled("paddle", "out")) << "there the result has none";
  EXPECT_FALSE(average_reads_scaled("openvino", "")) << "the others do as they are told";
}

/// A ConvTranspose of so many groups with a weight of this shape.
int axis_of_transposed(const char* target, std::int64_t groups, const Shape& weight) {
  Builder net(13);
  net.input("x", dims({1, weight[0], 4, 4}));
  net.numbers("w", weight,
              std::vector<float>(static_cast<std::size_t>(*num_elements(weight)), 0.5F));
  net.node("ConvTranspose", {"x", "w"}, {"y"}).set("group", groups);
  net.output("y");
  infer_types(net.model);
  QuantConfig config;
  config.target = target;
  return make_plan(net.model, config).weights.at(0).spec.axis;
}

TEST(Targets, ChannelsOfTransposedConvolutionsLieAlongOneAxis) {
  EXPECT_EQ(axis_of_transposed("generic", 1, {4, 6, 2, 2}), 1);
  EXPECT_EQ(axis_of_transposed("generic", 4, {4, 1, 2, 2}), 0) << "depthwise";
  EXPECT_EQ(axis_of_transposed("openvino", 4, {4, 1, 2, 2}), -1) << "not known to take axis 0";
  EXPECT_EQ(axis_of_transposed("generic", 2, {4, 3, 2, 2}), -1) << "ONNX has no axis for them";
  EXPECT_EQ(axis_of_transposed("generic", 2, {4, 1, 2, 2}), -1) << "two rows a channel";
}

}  // namespace
}  // namespace quench
