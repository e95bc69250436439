// SPDX-License-Identifier: Apache-2.0
// Equalisation: nothing changes in float, and quantising costs less.
#include "tune/equalize.h"

#include <algorithm>

#include "unit/tune/networks.h"

namespace quench::testing {
namespace {

/// How far the quantised network is from float, squared.
double error_of(const Model& model, const Model& reference, const QuantConfig& config) {
  const std::vector<TensorMap> batches = {batch(0), batch(1), batch(2)};
  const QuantPlan plan = make_plan(model, config);
  const Model quantised = insert_qdq(model, plan, solved(model, plan, batches));
  return squared_distance(run(quantised, batch(3)), run(reference, batch(3)));
}

/// Equalises, checks that float results stay, and returns how much smaller the error gets.
double gain(Uneven& network, std::size_t float_nodes, QuantConfig config = {}) {
  const Model before = network.model;
  const double unequal = error_of(before, before, config);
  const std::vector<TensorMap> batches = {batch(0), batch(1), batch(2)};
  const tune::Equalized done =
      tune::equalize(network.model, make_plan(before, config), batches, {});
  EXPECT_EQ(done.scaled.size(), 1U);
  EXPECT_EQ(done.float_nodes.size(), float_nodes);
  const std::vector<float> want = run(before, batch(3));
  const std::vector<float> got = run(network.model, batch(3));
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3) << i;
  config.skip_quant_node = done.float_nodes;
  return unequal / error_of(network.model, before, config);
}

TEST(Equalize, EvensOutBehindRelu) {
  Uneven network;
  network.then("Relu", {"a"}, "r");
  network.finish("r");
  EXPECT_GT(gain(network, 0), 10);
}

TEST(Equalize, EvensOutBehindAGate) {
  Uneven network;
  network.then("HardSigmoid", {"a"}, "gate").then("Mul", {"a", "gate"}, "m");
  network.finish("m");
  EXPECT_GT(gain(network, 0), 10);
}

TEST(Equalize, EvensOutBehindAHardSwishInFloat) {
  Uneven network;
  network.model.opsets[""] = 14;
  network.then("HardSwish", {"a"}, "h");
  network.finish("h");
  QuantConfig config;
  config.target =
      "paddle";  // its products run in float: so does what gives the gate its input back
  EXPECT_GT(gain(network, 1, config), 10);
  EXPECT_EQ(std::ranges::count(network.model.graph.nodes, "HardSigmoid", &Node::op_type), 1);
}

TEST(Equalize, LeavesAHardSwishWholeThatItGainsNothingAt) {
  Network network;
  network.model.opsets[""] = 14;
  network.numbers("a_w", {2, 2, 1, 1}, {8, -4, 4, 8});
  network.node("Conv", {"x", "a_w"}, {"a"}).name = "conv_a";
  network.node("HardSwish", {"a"}, {"h"}).foreign = "of a file";
  network.numbers("out_w", {2, 2, 1, 1}, {1, 2, -2, 1});
  network.node("Conv", {"h", "out_w"}, {"out"}).name = "conv_out";
  network.output("out");
  infer_types(network.model);
  QuantConfig config;
  config.target = "paddle";
  const std::string before = dump(network.model);
  const std::vector<TensorMap> batches = {batch(0)};
  const QuantPlan plan = make_plan(network.model, config);
  EXPECT_TRUE(tune::equalize(network.model, plan, batches, {}).scaled.empty());
  EXPECT_EQ(dump(network.model), before);
  EXPECT_EQ(network.model.graph.nodes.at(1).foreign, "of a file");
}

TEST(Equalize, EvensOutBehindAShift) {
  Uneven network;
  network.number("shift", 0.002F);
  network.then("Relu", {"a"}, "r").then("Add", {"r", "shift"}, "s");
  network.finish("s");
  EXPECT_GT(gain(network, 0), 10);
}

TEST(Equalize, HelpsWeightsWithOneGrid) {
  Uneven network;
  network.then("Relu", {"a"}, "r");
  network.finish("r");
  QuantConfig config;
  config.global.per_channel = false;
  EXPECT_GT(gain(network, 0, config), 10);
}

TEST(Equalize, LeavesWhatAClipCutsAlone) {
  Uneven network;
  network.number("low", 0).number("high", 6);
  network.then("Clip", {"a", "low", "high"}, "c");
  network.finish("c");
  // Channel 0 reaches the bound; channel 1 stays far below it and may grow.
  EXPECT_GT(gain(network, 0), 10);
}

TEST(Equalize, LeavesOutputsAlone) {
  Uneven network;
  network.then("Relu", {"a"}, "r");
  network.output("r");
  network.finish("r");
  const QuantPlan plan = make_plan(network.model, {});
  const std::vector<TensorMap> batches = {batch()};
  EXPECT_EQ(tune::equalize(network.model, plan, batches, {}).scaled.size(), 0U);
}

}  // namespace
}  // namespace quench::testing
