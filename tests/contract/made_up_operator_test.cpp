// SPDX-License-Identifier: Apache-2.0
// A row is all that an activation needs to be treated like the others.
#include <algorithm>

#include "exec/engine/samplewise.h"
#include "ops/ops.h"
#include "passes/channel_sets.h"
#include "plan/layers_behind.h"
#include "plan/target.h"
#include "tune/scale_groups.h"
#include "unit/plan/networks.h"

namespace quench {

namespace ops {
void infer_same(InferContext& context);
}

namespace {

using testing::is_integer;
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
                      .epilogue = {"leaky_relu", 0.5F}}};
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
    // A TFLite file can hold TFLite's own operators only, each with scales that its kernels fix.
    if (target.name == "tflite") continue;
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

TEST_F(MadeUp, IsFusedWithTheLayerBeforeIt) {
  Network net;
  net.conv("x", "a").then("Bend", {"a"}, "b").output("b");
  infer_types(net.model);
  net.run({"fuse_kernels"});
  ASSERT_EQ(net.text(), "quench.exec.Conv(x,a_w,a_b)->b");
  EXPECT_EQ(net.graph().nodes[0].get_string("activation", ""), "leaky_relu");
  EXPECT_EQ(net.graph().nodes[0].get_float("activation_alpha", 0), 0.5F);
}

TEST_F(MadeUp, IsLookedUpBetweenBytes) {
  testing::Builder net;
  net.input("x", testing::dims({2, 3}), DType::UInt8);
  net.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  net.node("DequantizeLinear", {"x", "s", "z"}, {"floats"});
  net.node("Bend", {"floats"}, {"bent"});
  net.node("QuantizeLinear", {"bent", "s", "z"}, {"y"});
  net.output("y");
  infer_types(net.model);
  net.run({"fuse_integer"});
  EXPECT_EQ(net.text(), "quench.exec.Table(x)->y");
}

TEST_F(MadeUp, KeepsSamplesAndChannelsApart) {
  Network net = network();
  net.graph()[net.id("x")].type.shape->front() = {.value = -1, .symbol = "N"};
  infer_types(net.model);
  EXPECT_EQ(exec::batch_of_samples(net.graph()), "N");
  const passes::ChannelSets channels(net.graph());
  EXPECT_EQ(channels.set_of(net.id("a")), channels.set_of(net.id("b")));
  EXPECT_NE(channels.set_of(net.id("b")), channels.set_of(net.id("c")));
}

}  // namespace
}  // namespace quench
