// SPDX-License-Identifier: Apache-2.0
// One layer at a time: partial runs must find what whole runs find.
#include "analyze/sensitivity.h"

#include "analyze/layer_error.h"
#include "analyze/partial.h"
#include "calibrate/collect.h"
#include "unit/analyze/noise.h"
#include "unit/plan/networks.h"

namespace quench {
namespace {

using testing::Network;
using testing::Noise;

/// A residual block: the value that the last layer reads has a way around the middle one.
Network residual_network() {
  Network net;
  net.conv("x", "y").then("Relu", {"y"}, "r").conv("r", "a").then("Add", {"a", "r"}, "sum");
  net.conv("sum", "out").output("out");
  return net;
}

/// A job that has seen its calibration set, without any tuning.
tune::State solved(Model model, const Context& context) {
  QuantizeOptions options;
  tune::State state(options, context);
  infer_types(model);
  state.model = std::move(model);
  state.plan = make_plan(state.model, state.config);
  Noise calibration(12);
  state.statistics =
      calibrate::collect(state.model, analyze::values_of_any_choice(state.model, state.config),
                         calibration, {.batch = 1}, context);
  state.solution = calibrate::solve(state.model, state.plan, state.statistics);
  return state;
}

struct Bench {
  explicit Bench(Network net)
      : state(solved(std::move(net.model), context)),
        simulator(state),
        evaluator(state.model,
                  {std::make_unique<Noise>(6),
                   {simulator.model().graph[simulator.model().graph.inputs[0]]},
                   1,
                   context},
                  context),
        metric("sqnr", {"out"}) {}
  analyze::SensitivityJob job() {
    return {.simulator = simulator,
            .evaluator = evaluator,
            .metric = metric,
            .context = context,
            .scores = {},
            .checkpoint = {}};
  }

  Context context;
  tune::State state;
  analyze::Simulator simulator;
  evaluation::Evaluator evaluator;
  evaluation::SampleMetric metric;
};

TEST(Sensitivity, PartialRunsFindWhatWholeRunsFind) {
  Bench bench(residual_network());
  ASSERT_EQ(bench.simulator.layers().size(), 3U);
  analyze::SensitivityJob exact = bench.job();
  analyze::score_exactly(exact);
  analyze::SensitivityJob plain = bench.job();
  analyze::score_plainly(plain, false);
  for (const analyze::Layer& layer : bench.simulator.layers()) {
    const auto& a = exact.scores.at(layer.name);
    const auto& b = plain.scores.at(layer.name);
    ASSERT_EQ(a.size(), 6U);
    ASSERT_EQ(b.size(), 6U);
    EXPECT_GT(evaluation::sqnr_of(a), 10) << layer.name;
    EXPECT_LT(evaluation::sqnr_of(a), 90) << layer.name;
    EXPECT_NEAR(evaluation::sqnr_of(a), evaluation::sqnr_of(b), 1e-3) << layer.name;
  }
}

TEST(Sensitivity, AllButOneLeavesThatOneInFloat) {
  Bench bench(residual_network());
  const Model model = bench.simulator.quantized({.in_float = {"conv_a"}});
  EXPECT_EQ(model.graph.find("a_w_quantized"), kNoValue);
  EXPECT_NE(model.graph.find("y_w_quantized"), kNoValue);
}

TEST(Sensitivity, LayersWithOtherBits) {
  Bench bench(residual_network());
  const analyze::Choice choice{.weight_bits = {{"conv_a", 4}}};
  const QuantPlan plan = bench.simulator.plan_of(choice);
  const QuantSolution solution = bench.simulator.solve(plan);
  int four = 0;
  for (const auto& [place, params] : solution.weights) four += params.spec.bits == 4 ? 1 : 0;
  EXPECT_EQ(four, 1);
}

TEST(Sensitivity, ScoresOfAnInterruptedRunAreKept) {
  Bench bench(residual_network());
  analyze::SensitivityJob job = bench.job();
  const std::vector<analyze::SampleScore> known(6, {.metric = 1, .signal = 1, .noise = 1});
  job.scores["conv_a"] = known;
  analyze::score_exactly(job);
  EXPECT_EQ(job.scores.at("conv_a")[0].noise, 1);
  EXPECT_EQ(job.scores.at("conv_y").size(), 6U);
  const auto order = analyze::rank(bench.simulator.layers(), bench.metric, job.scores, false);
  EXPECT_EQ(order.front().layer, "conv_a");
}

TEST(Sensitivity, QuickNamesTheWorst) {
  Bench bench(residual_network());
  analyze::SensitivityJob exact = bench.job();
  analyze::score_exactly(exact);
  analyze::SensitivityJob quick = bench.job();
  analyze::score_quickly(quick, 1);
  const auto& layers = bench.simulator.layers();
  EXPECT_EQ(analyze::rank(layers, bench.metric, quick.scores, false).front().layer,
            analyze::rank(layers, bench.metric, exact.scores, false).front().layer);
}

TEST(Sensitivity, RankBreaksTiesByNoiseAndPutsNaNFirst) {
  const std::vector<analyze::Layer> layers = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  const evaluation::SampleMetric metric("top1", {"out"});
  const analyze::Scores scores = {{"a", {{.metric = 50, .signal = 1, .noise = 0.1}}},
                                  {"b", {{.metric = 50, .signal = 1, .noise = 0.2}}},
                                  {"c", {{.metric = std::nan(""), .signal = 1, .noise = 0}}}};
  const auto order = analyze::rank(layers, metric, scores, false);
  EXPECT_EQ(order[0].layer, "c");
  EXPECT_EQ(order[1].layer, "b");
  EXPECT_EQ(order[2].layer, "a");
}

TEST(LayerErrors, GrowWhereBitsAreFew) {
  Bench bench(residual_network());
  Noise noise(3);
  std::vector<TensorMap> batches;
  for (std::int64_t i = 0; i < 3; ++i) batches.push_back(noise.read(i).inputs);
  const auto errors = [&](int bits) {
    const Model quantized = bench.simulator.quantized({.weight_bits = {{"conv_a", bits}}});
    return analyze::layer_errors(
        bench.simulator.model(), quantized,
        analyze::compared_values(bench.simulator.model(), bench.simulator.plan()), batches,
        bench.context);
  };
  const auto eight = errors(8);
  const auto two = errors(2);
  ASSERT_EQ(eight.size(), 3U);
  EXPECT_EQ(eight[0].layer, "conv_y");
  EXPECT_EQ(eight[0].value, "r");  // behind the activation that runs inside the layer
  EXPECT_EQ(eight[0].sqnr, two[0].sqnr);
  EXPECT_GT(eight[1].sqnr, two[1].sqnr + 6);
  EXPECT_GT(eight[1].cosine, two[1].cosine);
  EXPECT_LT(eight[1].mse, two[1].mse);
}

}  // namespace
}  // namespace quench
