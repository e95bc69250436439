// SPDX-License-Identifier: Apache-2.0
// What a layer does to the outputs is told where they can be compared: in front of a loop.
#include "analyze/layer_scores.h"

#include "calibrate/collect.h"
#include "unit/analyze/noise.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Network;
using testing::Noise;

Network two_layers() {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "r").conv("r", "a");
  return net;
}

/// As many rounds as `a` has positive values, and `a` from each.
Network with_loop() {
  Network net = two_layers();
  net.numbers("zero", {1}, {0});
  net.then("Greater", {"a", "zero"}, "positive");
  net.then("Cast", {"positive"}, "ones").then("ReduceSum", {"ones"}, "rounds");
  node_called(net.graph(), "ones").set("to", std::int64_t{7});
  node_called(net.graph(), "rounds").set("keepdims", std::int64_t{0});
  Graph body;
  for (const auto& [name, dtype] : {std::pair("i", DType::Int64), std::pair("go", DType::Bool)}) {
    const ValueType type = ValueType::tensor(dtype, std::vector<Dim>{});
    body.inputs.push_back(body.add_value({.name = name, .type = type, .declared = true}));
  }
  const ValueId seen = body.add_value({.name = "a", .captured = true});
  body.add_node("Identity", {body.inputs[1]}, {"go_on"});
  body.add_node("Identity", {seen}, {"slice"});
  body.outputs = {body.find("go_on"), body.find("slice")};
  net.then("Loop", {"rounds", ""}, "out");
  node_called(net.graph(), "out").set("body", GraphBox(std::move(body)));
  net.output("out");
  return net;
}

/// By the value that a layer makes.
std::map<std::string, double> effects(Network net) {
  const Context context;
  tune::State state({}, context);
  infer_types(net.model);
  state.model = net.model;
  state.plan = make_plan(state.model, state.config);
  state.samples = {std::make_unique<Noise>(20), state.model.graph, 4, true};
  state.validation = {
      state.model, {state.samples.read(state.samples.validation(), 1), context}, context};
  state.statistics = calibrate::collect(state.model, calibrate::observed_values(state.plan),
                                        state.samples.source(), {.count = 16}, context);
  state.solution = calibrate::solve(state.model, state.plan, state.statistics);
  const Model quantized = insert_qdq(state.model, state.plan, state.solution);
  std::map<std::string, double> found;
  for (const LayerScore& layer : analyze::score_layers(state, quantized)) {
    found[layer.value] = layer.output_sqnr;
  }
  return found;
}

TEST(LayerScores, WhatALoopReadsStandsForItsOutputs) {
  Network plain = two_layers();
  plain.output("a");
  const double expected = effects(std::move(plain)).at("r");
  EXPECT_GT(expected, 20);
  EXPECT_EQ(effects(with_loop()).at("r"), expected);
}

}  // namespace
}  // namespace quench
