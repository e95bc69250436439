// SPDX-License-Identifier: Apache-2.0
// Hard-swish without float: the gate becomes a Clip of integers, and gives the same.
#include <algorithm>

#include "tune/equalize.h"
#include "unit/tune/networks.h"

namespace quench::testing {
namespace {

std::size_t count(const Model& model, const std::string& op) {
  return static_cast<std::size_t>(std::ranges::count(model.graph.nodes, op, &Node::op_type));
}

/// conv "a", whose results reach from below the gate's foot to above its top, times its gate.
struct Swish : Network {
  explicit Swish(float reach = 6) {
    numbers("a_w", {2, 2, 1, 1}, {reach, -reach / 2, reach / 3, reach / 4});
    numbers("a_b", {2}, {reach / 8, 0.001F});
    node("Conv", {"x", "a_w", "a_b"}, {"a"}).name = "conv_a";
    node("HardSigmoid", {"a"}, {"gate"}).set("alpha", 1.0F / 6);
    then("Mul", {"a", "gate"}, "m");
    numbers("out_w", {2, 2, 1, 1}, {0.1F, 1, -0.2F, 1.5F});
    node("Conv", {"m", "out_w"}, {"out"}).name = "conv_out";
    output("out");
    infer_types(model);
  }
};

const std::vector<TensorMap>& batches() {
  static const std::vector<TensorMap> kBatches = {batch(0), batch(1), batch(2)};
  return kBatches;
}

TEST(HardGate, TheInputsGridStartsWhereTheGateOpens) {
  const Swish net;
  const QuantPlan plan = make_plan(net.model, {});
  QuantSolution solution = solved(net.model, plan, batches());
  legalize(net.model, plan, solution);
  const QuantParams& x = solution.values.at("a");
  EXPECT_NEAR(-3, x.scale[0] * static_cast<float>(x.spec.q_min() - x.zero_point[0]), 1e-5);
  const QuantSolution once = solution;
  legalize(net.model, plan, solution);
  EXPECT_EQ(once.values.at("a"), solution.values.at("a"));
  EXPECT_EQ(once.values.at("gate"), solution.values.at("gate"));
}

TEST(HardGate, AClipOfIntegersGivesWhatTheGateGives) {
  const Swish net;
  QuantPlan plan = make_plan(net.model, {});
  const QuantSolution solution = solved(net.model, plan, batches());
  const Model clipped = insert_qdq(net.model, plan, solution);
  EXPECT_EQ(count(clipped, "HardSigmoid"), 0U);
  EXPECT_EQ(count(clipped, "Clip"), 1U);
  plan.integer_clip = false;
  const Model gated = insert_qdq(net.model, plan, solution);
  EXPECT_EQ(count(gated, "HardSigmoid"), 1U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(run(clipped, batch(i)), run(gated, batch(i))) << i;
}

TEST(HardGate, IsNotWorseThanAGridOfItsOwn) {
  const Swish net;
  const QuantPlan plan = make_plan(net.model, {});
  QuantPlan untied = plan;
  untied.values.at("a").floor.reset();
  const QuantSolution solution = solved(net.model, plan, batches());
  const auto error = [&](const QuantPlan& by) {
    const Model quantised = insert_qdq(net.model, by, solution);
    return squared_distance(run(quantised, batch(4)), run(net.model, batch(4)));
  };
  EXPECT_LE(error(plan), error(untied));
}

TEST(HardGate, SmallNumbersKeepTheirFineGrid) {
  const Swish net(0.05F);
  const QuantPlan plan = make_plan(net.model, {});
  const Model quantised = insert_qdq(net.model, plan, solved(net.model, plan, batches()));
  EXPECT_EQ(count(quantised, "HardSigmoid"), 1U);
}

TEST(HardGate, OtherReadersSeeWhatLiesBelow) {
  Swish net;
  net.numbers("side_w", {2, 2, 1, 1}, {1, 2, 3, 4});
  net.then("Conv", {"a", "side_w"}, "side").output("side");
  infer_types(net.model);
  const QuantPlan plan = make_plan(net.model, {});
  EXPECT_FALSE(plan.values.at("a").floor);
}

TEST(HardGate, LintCountsTheClipAsInteger) {
  const Swish net;
  const QuantPlan plan = make_plan(net.model, {});
  const Model quantised = insert_qdq(net.model, plan, solved(net.model, plan, batches()));
  for (const LintLine& line : lint(quantised, "onnxruntime")) {
    if (line.op_type != "Clip") continue;
    EXPECT_TRUE(line.integer) << line.reason;
  }
}

TEST(HardGate, ScaledGatesRunInsideALayer) {
  Uneven net;
  net.then("HardSigmoid", {"a"}, "gate").then("Mul", {"a", "gate"}, "m");
  net.finish("m");
  const Model before = net.model;
  const tune::Equalized done = tune::equalize(net.model, make_plan(before, {}), batches(), {});
  EXPECT_EQ(done.gates, 1U);
  const QuantPlan plan = make_plan(net.model, {});
  for (const auto& [name, node] : plan.nodes) EXPECT_NE(node.kind, NodePlan::Kind::Float) << name;
  const std::vector<float> want = run(before, batch(3));
  const std::vector<float> got = run(net.model, batch(3));
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3) << i;
}

}  // namespace
}  // namespace quench::testing
