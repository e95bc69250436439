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
      EXPECT_EQ(op.kind == NodePlan::Kind::Float, !op.reason.empty())
          << target.name << " " << op.op_type;
    }
  }
}

}  // namespace
}  // namespace quench
