// SPDX-License-Identifier: Apache-2.0
// Bias correction: means come back, also with one sample a run and behind a matrix product.
#include "tune/bias_correction.h"
#include "unit/tune/networks.h"

namespace quench::testing {
namespace {

const std::vector<TensorMap>& batches() {
  static const std::vector<TensorMap> all = {batch(0), batch(1), batch(2), batch(3)};
  return all;
}

/// Weights of few bits, so that rounding them moves the means.
QuantConfig coarse() {
  QuantConfig config;
  config.global.weight_bits = 3;
  return config;
}

/// The distance of the channels' means, quantised against float, over all batches.
double mean_error(const Model& quantised, const Model& reference) {
  double error = 0;
  for (const std::size_t c : {0U, 1U}) {
    double difference = 0;
    for (const TensorMap& each : batches()) {
      difference += mean_of(run(quantised, each), c) - mean_of(run(reference, each), c);
    }
    error += std::abs(difference);
  }
  return error;
}

/// Two layers whose channels are of one size: what moves their means is the rounding of weights.
struct Even : Network {
  Even() {
    numbers("a_w", {2, 2, 1, 1}, {0.8F, -0.45F, 0.33F, 0.61F});
    numbers("a_b", {2}, {0.4F, 0.3F});
    node("Conv", {"x", "a_w", "a_b"}, {"a"}).name = "conv_a";
    node("Relu", {"a"}, {"r"}).name = "relu";
    numbers("out_w", {2, 2, 1, 1}, {0.7F, -0.35F, 0.52F, 0.9F});
    numbers("out_b", {2}, {0.5F, -0.5F});
    node("Conv", {"r", "out_w", "out_b"}, {"out"}).name = "conv_out";
    output("out");
    infer_types(model);
  }
};

TEST(BiasCorrection, BringsMeansBack) {
  Even network;
  const QuantPlan plan = make_plan(network.model, coarse());
  const QuantSolution solution = solved(network.model, plan, batches());
  const double before = mean_error(insert_qdq(network.model, plan, solution), network.model);
  const tune::LayerMeans means = tune::measure_means(network.model, plan, batches(), {});
  Model full = network.model;
  EXPECT_EQ(tune::correct_biases(full, plan, solution, {batches(), means}, {}), 2U);
  EXPECT_LT(mean_error(insert_qdq(full, plan, solution), network.model), 0.3 * before);
  Model fast = network.model;
  EXPECT_EQ(tune::correct_biases_fast(fast, plan, solution, means), 2U);
  EXPECT_LT(mean_error(insert_qdq(fast, plan, solution), network.model), 0.7 * before);
}

TEST(BiasCorrection, CorrectsMatrixProducts) {
  Builder builder(13);
  builder.input("x", {{4}, {8}});
  std::vector<float> weight(32);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::sin(static_cast<float>(i));
  builder.numbers("w", {8, 4}, weight).numbers("b", {4}, {1, 2, 3, 4});
  builder.node("MatMul", {"x", "w"}, {"m"}).name = "m";
  builder.node("Add", {"m", "b"}, {"out"}).name = "out";
  builder.output("out");
  infer_types(builder.model);
  QuantConfig config = coarse();
  config.by_type["Add"].weight_bits = 8;  // what is moved must not be rounded away
  const QuantPlan plan = make_plan(builder.model, config);
  std::vector<TensorMap> inputs;
  for (int run = 0; run < 8; ++run) {
    std::vector<float> data(32);
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = 1 + 0.2F * std::cos(static_cast<float>(3 * i) + static_cast<float>(run));
    }
    inputs.push_back({{"x", Tensor::of<float>({4, 8}, std::span<const float>(data))}});
  }
  const QuantSolution solution = solved(builder.model, plan, inputs);
  const auto error = [&](const Model& model) {
    const Model quantised = insert_qdq(model, plan, solution);
    std::vector<double> difference(4, 0.0);
    for (const TensorMap& each : inputs) {
      const std::vector<float> got = run(quantised, each);
      const std::vector<float> want = run(builder.model, each);
      for (std::size_t i = 0; i < got.size(); ++i) difference[i % 4] += double{got[i]} - want[i];
    }
    double sum = 0;
    for (const double each : difference) sum += std::abs(each);
    return sum;
  };
  const double before = error(builder.model);
  const tune::LayerMeans means = tune::measure_means(builder.model, plan, inputs, {});
  Model corrected = builder.model;
  EXPECT_EQ(tune::correct_biases(corrected, plan, solution, {inputs, means}, {}), 1U);
  EXPECT_LT(error(corrected), 0.1 * before);
}

TEST(BiasCorrection, NamesPoorLayers) {
  Uneven network;
  network.then("Relu", {"a"}, "r");
  network.finish("r");
  const QuantPlan plan = make_plan(network.model, coarse());
  const Model quantised = insert_qdq(network.model, plan, solved(network.model, plan, batches()));
  const auto poor = [&](double least) {
    return tune::poor_layers(network.model, quantised, plan, batches(), least, {});
  };
  EXPECT_TRUE(poor(-60).empty());
  EXPECT_EQ(poor(200), (std::set<std::string>{"a", "out"}));
}

TEST(Observers, AutoIsSettledByHeldOutSamples) {
  QuantPlan plan;
  plan.values["x"] = {.kind = ValuePlan::Kind::Observed,
                      .spec = {.is_signed = false, .symmetric = false, .observer = "auto"}};
  EXPECT_TRUE(calibrate::wants_held_out(plan));
  // One outlier in what was seen; none in what judges: its whole range cannot win.
  std::vector<float> usual(200000);
  for (std::size_t i = 0; i < usual.size(); ++i) usual[i] = static_cast<float>(i) / 200000;
  std::vector<float> seen = usual;
  seen.push_back(40);
  StatisticMap first;
  StatisticMap second;
  first["x"].add_sample(seen);
  second["x"].add_sample(usual);
  const QuantPlan legalized = calibrate::choose_observers(plan, first, second);
  const std::string observer = legalized.values.at("x").spec.observer;
  EXPECT_FALSE(calibrate::wants_held_out(legalized));
  EXPECT_NE(observer, "min_max");
  EXPECT_LT(find_observer(observer).range(first["x"], legalized.values.at("x").spec).max, 20);
}

}  // namespace
}  // namespace quench::testing
