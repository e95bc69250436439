// SPDX-License-Identifier: Apache-2.0
// The flow in steps and PaddleSlim's one call, on the demo's network and images.
#include "quench/ptq.h"

#include <gtest/gtest.h>

#include <limits>

#include "quench/error.h"
#include "support/fashion.h"

namespace quench {
namespace {

using namespace testing::fashion;

TEST(PTQ, GivesWhatTheOneCallGives) {
  QuantizeOptions options;
  options.config = with_observer("KL");
  options.data = samples(29);
  options.held_out = 0;
  options.bias_correction = false;
  const std::string path = out_path("one_call");
  quantize(float_path(), path, options, with_threads(2));
  EXPECT_TRUE(bytes_of(load(path)) == bytes_of(flow(options.config)));
  std::filesystem::remove(path);
}

TEST(PTQ, DoesNotDependOnTheBatchSizeOrTheThreads) {
  for (const char* observer : {"mse", "KL", "avg", "moving_average_abs_max"}) {
    const std::string one = bytes_of(flow(with_observer(observer), 1, 1));
    EXPECT_TRUE(one == bytes_of(flow(with_observer(observer), 4, 1))) << observer;
    EXPECT_TRUE(one == bytes_of(flow(with_observer(observer), 7, 2))) << observer;
  }
}

TEST(PTQ, ReturnsTheFloatOutputs) {
  const PTQ ptq({}, with_threads(1));
  ObservedModel observed = ptq.quantize(load(float_path()));
  const auto source = open_data(samples(1), observed.inputs());
  const TensorMap batch = source->read(0).inputs;
  const TensorMap actual = observed.run(batch);
  const auto got = actual.at("scores").data<float>();
  Session plain(load(float_path()), {}, with_threads(1));
  const TensorMap expected = plain.run(batch);
  const auto want = expected.at("scores").data<float>();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3) << i;
}

TEST(PTQ, AFailedRunCountsForNothing) {
  const PTQ ptq({}, with_threads(1));
  ObservedModel observed = ptq.quantize(load(float_path()));
  feed(observed, 4);
  const StatisticMap before = observed.statistics();
  EXPECT_THROW(observed.run({{"image", Tensor::of<float>({1, 2}, {1, 2})}}), Error);
  EXPECT_TRUE(observed.statistics() == before);
}

TEST(PTQ, MergesWhatWasSeenElsewhere) {
  const PTQ ptq({}, with_threads(1));
  ObservedModel seen = ptq.quantize(load(float_path()));
  feed(seen, 4);
  ObservedModel merged = ptq.quantize(load(float_path()));
  merged.merge(seen.statistics());
  EXPECT_TRUE(bytes_of(ptq.convert(merged)) == bytes_of(ptq.convert(seen)));
}

TEST(PTQ, ConvertWithoutRunsIsAnError) {
  const PTQ ptq({}, with_threads(1));
  const ObservedModel observed = ptq.quantize(load(float_path()));
  expect_in("call run()", error_of([&] { ptq.convert(observed); }));
}

TEST(PTQ, LayerBeforeNameBeforeTypeBeforeGlobal) {
  const Model model = prepare_for_quantization(load(float_path()));
  std::vector<std::string> convs;
  for (const Node& node : model.graph.nodes) {
    if (node.op_type == "Conv") convs.push_back(node.name);
  }
  ASSERT_GE(convs.size(), 3U);
  QuantConfig config = with_observer("abs_max");
  config.global.weight_bits = 7;
  config.by_type["Conv"].weight_bits = 6;
  QuantRule by_name;
  by_name.weight_bits = 5;
  config.by_name = {{convs[1], by_name}, {convs[0], by_name}};
  config.by_layer[convs[0]].weight_bits = 4;
  const PTQ ptq(config, with_threads(1));
  ObservedModel observed = ptq.quantize(load(float_path()));
  std::map<std::string, int> bits;
  for (const WeightPlan& weight : observed.plan().weights) {
    const Node& node = node_called(observed.model().graph, weight.node);
    if (weight.input == 1)
      bits[node.op_type == "Conv" ? node.name : node.op_type] = weight.spec.bits;
  }
  EXPECT_EQ(bits[convs[0]], 4);
  EXPECT_EQ(bits[convs[1]], 5);
  EXPECT_EQ(bits[convs[2]], 6);
  EXPECT_EQ(bits["Gemm"], 7);
}

TEST(PTQ, UnknownNamesSuggestTheNearest) {
  const auto quantised_with = [](const QuantConfig& config) {
    return error_of([&] { PTQ(config, with_threads(1)).quantize(load(float_path())); });
  };
  expect_in("'hist'", quantised_with(with_observer("hits")));
  QuantConfig config;
  config.by_type["Convv"].skip = true;
  expect_in("'Conv'", quantised_with(config));
  config = with_observer("my_observr");
  config.custom_observers["my_observer"] = [](const Statistic&, const QuantSpec&) {
    return Range{};
  };
  expect_in("'my_observer'", quantised_with(config));
  config = {};
  config.global.weight_observer = "channel_wise_absmax";
  expect_in("'channel_wise_abs_max'", quantised_with(config));
}

TEST(PTQ, CustomObserversDecide) {
  QuantConfig config = with_observer("mine");
  config.custom_observers["mine"] = [](const Statistic& seen, const QuantSpec&) {
    return Range{seen.min, seen.max};
  };
  EXPECT_TRUE(bytes_of(flow(config)) == bytes_of(flow(with_observer("min_max"))));
  config.custom_observers["mine"] = [](const Statistic&, const QuantSpec&) {
    return Range{0, std::numeric_limits<double>::quiet_NaN()};
  };
  expect_in("custom observer 'mine'", error_of([&] { flow(config); }));
}

}  // namespace
}  // namespace quench
