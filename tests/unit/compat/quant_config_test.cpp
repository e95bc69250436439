// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's QuantConfig with observers as classes, and its legacy PTQ.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "quench/legacy_ptq.h"
#include "quench/observers.h"
#include "support/fashion.h"

namespace quench {
namespace {

using namespace testing::fashion;

std::int64_t count(const Model& model, const std::string& op_type) {
  return std::ranges::count(model.graph.nodes, op_type, &Node::op_type);
}

std::int64_t integer_weights(const Model& model) {
  return std::ranges::count_if(model.graph.values(), [](const Value& value) {
    return value.constant && value.constant->dtype() == DType::Int8 && value.constant->rank() > 1;
  });
}

TEST(PaddleConfig, ObserversAsClassesAndAsNamesAreTheSame) {
  const Model classes =
      flow(paddleslim::QuantConfig(KLObserver(8), AbsMaxChannelWiseWeightObserver(8)));
  EXPECT_TRUE(bytes_of(classes) ==
              bytes_of(flow(paddleslim::QuantConfig("KL", "channel_wise_abs_max"))));
  EXPECT_FALSE(bytes_of(classes) ==
               bytes_of(flow(paddleslim::QuantConfig(AVGObserver(), "abs_max"))));
  QuantConfig config;
  config.global.activation_observer = "KL";
  config.global.weight_observer = "channel_wise_abs_max";
  EXPECT_TRUE(bytes_of(classes) == bytes_of(flow(config)));
}

TEST(PaddleConfig, HistObserverKeepsItsShare) {
  const paddleslim::QuantConfig config(HistObserver(8, 1024, 0.9), "mse");
  EXPECT_EQ(config.hist_percent, 0.9);
  EXPECT_EQ(config.bins, 1024);
  paddleslim::QuantConfig by_type("abs_max", "mse");
  by_type.add_type_config({"Conv2D"}, HistObserver(8, 1024, 0.9), "mse");
  by_type.add_type_config({"Linear"}, HistObserver(8, 1024, 0.9), "mse");
  EXPECT_EQ(by_type.by_type.at("Conv").activation_observer, "hist");
  expect_in("one for all", error_of([&] {
              by_type.add_layer_config({"conv0"}, HistObserver(8, 1024, 0.99), "mse");
            }));
  EXPECT_FALSE(bytes_of(flow(by_type)) ==
               bytes_of(flow(paddleslim::QuantConfig("abs_max", "mse"))));
}

TEST(PaddleConfig, NothingAskedForIsNothingDone) {
  const Model model = load(float_path());
  const PTQ ptq(paddleslim::QuantConfig(std::nullopt, std::nullopt), with_threads(1));
  ObservedModel observed = ptq.quantize(model);
  feed(observed, 4, 4);
  EXPECT_TRUE(bytes_of(ptq.convert(observed)) == bytes_of(model));
}

TEST(PaddleConfig, WithoutActivationsOnlyWeightsAreIntegers) {
  const PTQ ptq(paddleslim::QuantConfig(std::nullopt, AbsMaxChannelWiseWeightObserver()),
                with_threads(1));
  const ObservedModel observed = ptq.quantize(load(float_path()));
  const Model made = ptq.convert(observed);  // needs no data
  EXPECT_EQ(count(made, "QuantizeLinear"), 0);
  const std::int64_t layers = count(made, "Conv") + count(made, "Gemm");
  EXPECT_EQ(count(made, "DequantizeLinear"), layers);
  EXPECT_EQ(integer_weights(made), layers);
}

TEST(PaddleConfig, WithoutWeightsOnlyActivationsAreQuantised) {
  const Model made = flow(paddleslim::QuantConfig("abs_max", std::nullopt));
  EXPECT_GT(count(made, "QuantizeLinear"), 5);
  EXPECT_EQ(integer_weights(made), 0);
  // It must still run, and near to the float model.
  const auto source =
      open_data(samples(1), Session(load(float_path()), {}, with_threads(1)).inputs());
  const TensorMap batch = source->read(0).inputs;
  Session quantised(made, {}, with_threads(1));
  Session in_float(load(float_path()), {}, with_threads(1));
  const TensorMap got = quantised.run(batch);
  const TensorMap want = in_float.run(batch);
  const auto a = got.at("scores").data<float>();
  const auto b = want.at("scores").data<float>();
  EXPECT_EQ(std::ranges::max_element(a) - a.begin(), std::ranges::max_element(b) - b.begin());
}

TEST(PaddleConfig, ALayerOfItsOwn) {
  const Model prepared = prepare_for_quantization(load(float_path()));
  std::vector<std::string> convs;
  for (const Node& node : prepared.graph.nodes) {
    if (node.op_type == "Conv") convs.push_back(node.name);
  }
  paddleslim::QuantConfig config("abs_max", "channel_wise_abs_max");
  config.add_layer_config({convs[0], convs[1]}, std::nullopt, std::nullopt);
  config.add_name_config({convs[2]}, std::nullopt, "abs_max");
  const PTQ ptq(config, with_threads(1));
  ObservedModel observed = ptq.quantize(load(float_path()));
  const Graph& graph = observed.model().graph;
  for (const Node& node : graph.nodes) {
    const auto at = std::ranges::find(convs, node.name) - convs.begin();
    const auto& planned = observed.plan().nodes.at(output_name(graph, node));
    EXPECT_TRUE(at >= 3 || planned.kind == NodePlan::Kind::Float) << node.name;
  }
  feed(observed, 4);
  const Model made = ptq.convert(observed);
  // All layers but the two: the third has integer weights between float activations.
  EXPECT_EQ(integer_weights(made), static_cast<std::int64_t>(convs.size()) - 2 + 1);
}

TEST(PaddleConfig, WeightsByObserversOfActivations) {
  std::set<std::string> different;
  for (const char* observer : {"KL", "hist", "emd", "avg", "abs_max"}) {
    different.insert(bytes_of(flow(paddleslim::QuantConfig("abs_max", observer))));
  }
  EXPECT_GE(different.size(), 4U);
}

TEST(SaveQuantizedModel, SetsTheShapesOfInputs) {
  const std::string path = out_path("spec");
  save_quantized_model(flow(paddleslim::QuantConfig("abs_max", "abs_max")), path,
                       {{"image", {1, 1, 28, 28}}});
  const Model made = load(path);
  EXPECT_EQ(made.graph[made.graph.inputs[0]].type.static_shape(), (Shape{1, 1, 28, 28}));
  std::filesystem::remove(path);
}

TEST(LegacyQuantizers, SetTheConfig) {
  const QuantConfig config =
      legacy_config(HistQuantizer(7, 512, 64, 0.999), legacy_quantizer("AbsmaxQuantizer"));
  EXPECT_EQ(config.global.activation_observer, "hist");
  EXPECT_EQ(config.global.activation_bits, 7);
  EXPECT_EQ(config.hist_percent, 0.999);
  EXPECT_EQ(config.bins, 512);
  EXPECT_EQ(config.global.weight_observer, "abs_max");
  EXPECT_FALSE(bytes_of(flow(legacy_config(HistQuantizer(8, 1024, 64, 0.9)))) ==
               bytes_of(flow(legacy_config(HistQuantizer(8, 1024, 64, 0.999)))));
  expect_in("'KLQuantizer'", error_of([] { legacy_quantizer("KLQuantiser"); }));
  EXPECT_THROW(legacy_config(PerChannelAbsmaxQuantizer()), Error);
  EXPECT_THROW(legacy_config(KLQuantizer(), KLQuantizer()), Error);
}

TEST(LegacyPTQ, FoldsBatchNormalizationOnlyWhereAsked) {
  const LegacyPTQ ptq(KLQuantizer(), PerChannelAbsmaxQuantizer(), with_threads(1));
  const auto norms = [&](bool fuse) {
    return count(ptq.quantize(load(float_path()), fuse).model(), "BatchNormalization");
  };
  EXPECT_GT(norms(false), 0);
  EXPECT_EQ(norms(true), 0);
}

}  // namespace
}  // namespace quench
