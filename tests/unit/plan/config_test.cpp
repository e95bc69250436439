// SPDX-License-Identifier: Apache-2.0
// Rules: precedence, patterns, names that match nothing.
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::error_of;
using testing::Network;

TEST(Rules, MoreSpecificOnesWin) {
  QuantConfig config;
  config.global.activation_bits = 8;
  config.global.weight_observer = "mse";
  config.by_type["Conv"].activation_bits = 7;
  config.by_name.emplace_back("conv_*", QuantRule{.activation_bits = 6});
  config.by_name.emplace_back("conv_y", QuantRule{.activation_bits = 5});
  config.by_layer["conv_z"].activation_bits = 4;
  EXPECT_EQ(config.rule_for("other", "Gemm").activation_bits, 8);
  EXPECT_EQ(config.rule_for("other", "Conv").activation_bits, 7);
  EXPECT_EQ(config.rule_for("conv_y", "Conv").activation_bits, 6) << "the first pattern wins";
  EXPECT_EQ(config.rule_for("conv_z", "Conv").activation_bits, 4);
  EXPECT_EQ(config.rule_for("conv_z", "Conv").weight_observer, "mse") << "left out: from global";
}

TEST(Rules, TheMostSpecificDecidesAboutSkipping) {
  QuantConfig config;
  config.by_type["Conv"].skip = true;
  config.by_layer["conv_y"].weight_bits = 8;
  EXPECT_TRUE(config.rule_for("conv_z", "Conv").skip);
  EXPECT_FALSE(config.rule_for("conv_y", "Conv").skip);
}

/// Two layers that are split over ranks, and one that is not.
Network split_network() {
  Network net;
  net.model.opsets["com.microsoft"] = 1;
  net.then("Flatten", {"x"}, "flat");
  for (const auto& [in, out, rows, columns] :
       {std::tuple{"flat", "up", 32, 2}, std::tuple{"up", "down", 2, 3}}) {
    net.constant(std::string(out) + "_w", Tensor::zeros(DType::Float32, {rows, columns}));
    net.then("MatMul", {in, std::string(out) + "_w"}, out);
  }
  net.then("AllReduce", {"down"}, "sum");
  net.graph().nodes.back().domain = "com.microsoft";
  net.constant("last_w", Tensor::zeros(DType::Float32, {3, 3}));
  net.then("MatMul", {"sum", "last_w"}, "last").output("last");
  return net;
}

TEST(Rules, LayersThatAreSplitHaveTypesOfTheirOwn) {
  Network net = split_network();
  QuantConfig config;
  config.by_type["MatMul"].weight_bits = 7;
  config.by_type["RowParallelLinear"].weight_bits = 6;
  config.by_type["ColumnParallelLinear"].weight_bits = 5;
  const auto bits = [&] {
    std::map<std::string, int> found;
    for (const WeightPlan& weight : net.plan(config).weights) found[weight.node] = weight.spec.bits;
    return found;
  };
  using Bits = std::map<std::string, int>;
  EXPECT_EQ(bits(), (Bits{{"up", 5}, {"down", 6}, {"last", 7}}));
  config.by_name.emplace_back("do*", QuantRule{.weight_bits = 4});
  EXPECT_EQ(bits(), (Bits{{"up", 5}, {"down", 4}, {"last", 7}})) << "names go before types";
  config.by_type["ColumnParallelLinear"].skip = true;
  EXPECT_EQ(bits(), (Bits{{"down", 4}, {"last", 7}}));
}

TEST(Rules, ListsOfTypesNameLayersThatAreSplit) {
  Network net = split_network();
  QuantConfig config;
  config.quantizable_op_type = {"RowParallelLinear"};
  const QuantPlan plan = net.plan(config);
  EXPECT_TRUE(testing::is_integer(net.plan_of(plan, "down")));
  EXPECT_TRUE(testing::is_float(net.plan_of(plan, "up")));
  EXPECT_TRUE(testing::is_float(net.plan_of(plan, "last")));
  EXPECT_FALSE(plan.values.contains("down")) << "parts of a sum stay in float";
}

TEST(Rules, PatternsHaveSetsAndQuestionMarks) {
  QuantConfig config;
  config.by_name.emplace_back("block[0-2].?.conv*", QuantRule{.weight_bits = 4});
  EXPECT_EQ(config.rule_for("block1.a.conv_x", "Conv").weight_bits, 4);
  EXPECT_FALSE(config.rule_for("block3.a.conv_x", "Conv").weight_bits);
  EXPECT_FALSE(config.rule_for("block1.ab.conv_x", "Conv").weight_bits);
}

TEST(Rules, NamesThatMatchNothingSuggestTheNearest) {
  Network net;
  net.conv("x", "y").output("y");
  QuantConfig config;
  config.by_layer["conv_yy"].skip = true;
  const auto [kind, text] = error_of([&] { net.plan(config); });
  EXPECT_EQ(kind, ErrorKind::BadConfig);
  EXPECT_NE(text.find("conv_y'"), std::string::npos) << text;

  config = {};
  config.skip_tensor_list = {"y_wx"};
  EXPECT_EQ(error_of([&] { net.plan(config); }).first, ErrorKind::BadConfig);
  config = {};
  config.skip_quant_node = {"nothing"};
  EXPECT_EQ(error_of([&] { net.plan(config); }).first, ErrorKind::BadConfig);
  config = {};
  config.quantizable_op_type = {"Cnov"};
  EXPECT_NE(error_of([&] { net.plan(config); }).second.find("Conv"), std::string::npos);
  config = {};
  config.by_name.emplace_back("dense*", QuantRule{});
  EXPECT_EQ(error_of([&] { net.plan(config); }).first, ErrorKind::BadConfig);
}

TEST(Rules, BitsOutOfRangeAreRefused) {
  Network net;
  net.conv("x", "y").output("y");
  QuantConfig config;
  config.global.weight_bits = 1;
  EXPECT_EQ(error_of([&] { net.plan(config); }).first, ErrorKind::BadConfig);
  config.global.weight_bits = 17;
  EXPECT_EQ(error_of([&] { net.plan(config); }).first, ErrorKind::BadConfig);
}

TEST(Targets, AnUnknownOneSuggestsTheNearest) {
  const auto [kind, text] = error_of([] { find_target("onnxruntim"); });
  EXPECT_EQ(kind, ErrorKind::Usage);
  EXPECT_NE(text.find("'onnxruntime'"), std::string::npos) << text;
}

TEST(Targets, EveryFloatRowSaysWhy) {
  for (const TargetInfo& target : all_targets()) {
    for (const TargetOp& op : target.ops) {
      // Rows for integers may say why what they read needs a scale.
      if (op.kind == NodePlan::Kind::Integer) continue;
      EXPECT_EQ(op.kind == NodePlan::Kind::Float, !op.reason.empty())
          << target.name << " " << op.op_type;
    }
  }
}

}  // namespace
}  // namespace quench
