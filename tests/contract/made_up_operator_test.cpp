// SPDX-License-Identifier: Apache-2.0
// A row is all that an activation needs to be treated like the others.
#include <algorithm>

#include "ops/ops.h"
#include "plan/layers_behind.h"
#include "plan/target.h"
#include "tune/scale_groups.h"
#include "unit/plan/networks.h"

namespace quench {

namespace ops {
void infer_same(InferContext& context);
}

namespace {

using testing::Network;

/// An activation that nothing of ours has heard of: x, or a part of it where it is negative.
class MadeUp : public ::testing::Test {
 protected:
  static ops::OpInfo row() {
    constexpr std::uint32_t kBend =
        ops::kFunction | ops::kFinite | ops::kMonotone | ops::kKeepsScale;
    return {.domain = "",
            .name = "Bend",
            .since = 1,
            .min_inputs = 1,
            .max_inputs = 1,
            .infer = ops::infer_same,
            .facts = {.is = kBend,
                      .integer = ops::IntegerForm::LookupTable,
                      .epilogue = ops::leaky_relu_epilogue}};
  }
  /// Conv a, Bend b, Conv c.
  static Network network() {
    Network net;
    net.conv("x", "a").then("Bend", {"a"}, "b").conv("b", "c").output("c");
    return net;
  }
  static QuantConfig config(const char* target) {
    QuantConfig config;
    config.target = target;
    return config;
  }

  const ops::ExtraOp extra_{row()};
};

TEST_F(MadeUp, IsForgottenAfterwards) {
  EXPECT_NE(ops::find_op("", "Bend"), nullptr);
  {
    ops::OpInfo other = row();
    other.name = "Fold";
    const ops::ExtraOp inner(other);
    EXPECT_NE(ops::find_op("", "Fold"), nullptr);
  }
  EXPECT_EQ(ops::find_op("", "Fold"), nullptr);
}

TEST_F(MadeUp, HasATypeWithoutARuleOfItsOwn) {
  Network net = network();
  infer_types(net.model);
  EXPECT_EQ(net.graph()[net.id("b")].type, net.graph()[net.id("a")].type);
}

TEST_F(MadeUp, IsPlannedLikeOtherActivations) {
  Network net = network();
  for (const TargetInfo& target : all_targets()) {
    const auto* theirs = plan::find_op(target, "Tanh");
    const auto* ours = plan::find_op(target, "Bend");
    EXPECT_EQ(ours, theirs) << target.name;
  }
  const QuantPlan plan = net.plan(config("dsp"));
  EXPECT_TRUE(is_integer(net.plan_of(plan, "b")));
  for (const char* value : {"a", "b"}) {
    EXPECT_EQ(plan.values.at(value).kind, ValuePlan::Kind::Observed) << value;
  }
}

TEST_F(MadeUp, IsLoweredBetweenItsOwnQuantisers) {
  Network net = network();
  const Model model = net.quantized(config("dsp"));
  const auto bend = std::ranges::find(model.graph.nodes, "Bend", &Node::op_type);
  ASSERT_NE(bend, model.graph.nodes.end());
  const Uses uses(model.graph);
  const auto node = [&](NodeId id) { return model.graph.nodes.at(static_cast<std::size_t>(id)); };
  const auto input = static_cast<std::size_t>(bend->inputs[0]);
  EXPECT_EQ(node(uses.producer[input]).op_type, "DequantizeLinear");
  EXPECT_EQ(node(uses.only_consumer(bend->outputs[0])).op_type, "QuantizeLinear");
}

TEST_F(MadeUp, LetsScalesThroughAndIsNoLayer) {
  Network net = network();
  infer_types(net.model);
  const auto groups = tune::find_scale_groups(net.model);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].values.size(), 2U) << "a and b are scaled together";
  EXPECT_EQ(plan::layers_behind(net.graph()).at("a"), 1) << "only the layer behind it counts";
}

}  // namespace
}  // namespace quench
