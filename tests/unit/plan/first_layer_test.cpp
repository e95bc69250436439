// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime is faster with a first convolution into few channels in float.
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::is_float;
using testing::is_integer;
using testing::Network;

/// conv_a of x, then `behind`, then convolutions until there are `layers` in all.
struct Chain : Network {
  explicit Chain(int layers, const std::string& behind = "Relu") {
    conv("x", "a");
    then(behind, {"a"}, "last_0");
    if (behind == "MaxPool") {
      graph().nodes.back().set("kernel_shape", std::vector<std::int64_t>{1, 1});
    }
    for (int i = 1; i < layers; ++i) {
      conv("last_" + std::to_string(i - 1), "last_" + std::to_string(i));
    }
    output("last_" + std::to_string(layers - 1));
  }
  bool first_is_integer(const QuantConfig& config = {}) {
    return is_integer(plan_of(plan(config), "a"));
  }
};

TEST(FirstLayer, StaysInFloatWithTheReason) {
  Chain net(20);
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_float(net.plan_of(plan, "a")));
  EXPECT_NE(net.plan_of(plan, "a").reason.find("faster in float"), std::string::npos);
  EXPECT_TRUE(is_integer(net.plan_of(plan, "last_1")));
  for (const LintLine& line : lint(net.quantized(), "onnxruntime")) {
    if (line.node == "conv_a") {
      EXPECT_NE(line.reason.find("faster in float"), std::string::npos);
    }
  }
}

TEST(FirstLayer, ARuleThatNamesItWins) {
  QuantConfig by_layer;
  by_layer.by_layer["conv_a"] = {};
  EXPECT_TRUE(Chain(20).first_is_integer(by_layer));
  QuantConfig by_name;
  by_name.by_name = {{"conv_[ab]", {}}};
  EXPECT_TRUE(Chain(20).first_is_integer(by_name));
  QuantConfig by_type;
  by_type.by_type["Conv"] = {};
  EXPECT_FALSE(Chain(20).first_is_integer(by_type));
}

TEST(FirstLayer, GoesToIntegersInSmallNetworks) { EXPECT_TRUE(Chain(19).first_is_integer()); }

TEST(FirstLayer, GoesToIntegersBeforeAPool) {
  EXPECT_TRUE(Chain(20, "MaxPool").first_is_integer());
}

TEST(FirstLayer, GoesToIntegersForOtherTargets) {
  QuantConfig config;
  config.target = "generic";
  EXPECT_TRUE(Chain(20).first_is_integer(config));
}

TEST(FirstLayer, GoesToIntegersWithManyChannels) {
  Network net;
  net.numbers("a_w", {16, 2, 1, 1}, std::vector<float>(32, 0.5F));
  net.node("Conv", {"x", "a_w"}, {"a"}).name = "conv_a";
  net.numbers("b_w", {2, 16, 1, 1}, std::vector<float>(32, 0.5F));
  net.node("Conv", {"a", "b_w"}, {"b"}).name = "conv_b";
  net.conv("b", "c_0");
  for (int i = 1; i < 20; ++i) {
    net.conv("c_" + std::to_string(i - 1), "c_" + std::to_string(i));
  }
  net.output("c_19");
  const QuantPlan plan = net.plan();
  EXPECT_TRUE(is_integer(net.plan_of(plan, "a")));
}

}  // namespace
}  // namespace quench
