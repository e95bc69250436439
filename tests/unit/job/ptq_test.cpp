// SPDX-License-Identifier: Apache-2.0
// The flow in steps and PaddleSlim's one call, on the demo's network and images.
#include "quench/ptq.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "quench/error.h"
#include "quench/paddleslim.h"
#include "support/paths.h"

namespace quench {
namespace {

std::string data_folder() { return (testing::source_dir() / "examples/data").string(); }
std::string float_path() { return data_folder() + "/fashion.onnx"; }

std::string out_path(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("ptq_test_" + name + ".onnx")).string();
}

DataOptions samples(std::int64_t limit) {
  DataOptions data;
  data.path = data_folder() + "/fashion-test-images-idx3-ubyte.gz";
  data.limit = limit;
  data.image.mean = {72.9};
  data.image.std = {90};
  return data;
}

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  context.module_dir = testing::binary_dir().string();
  return context;
}

void feed(ObservedModel& observed, std::int64_t batch, std::int64_t limit = 29) {
  const auto source = open_data(samples(limit), observed.inputs());
  BatchReader reader(*source, batch);
  while (const auto each = reader.next()) observed.run(each->inputs);
}

Model flow(const QuantConfig& config, std::int64_t batch = 4, int threads = 1) {
  const PTQ ptq(config, with_threads(threads));
  ObservedModel observed = ptq.quantize(load(float_path()));
  feed(observed, batch);
  return ptq.convert(observed);
}

/// The file's bytes, without notes on how it was made.
std::string bytes_of(Model model) {
  model.metadata.clear();
  const std::string path = out_path("bytes");
  save(model, path);
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

QuantConfig with_observer(const std::string& name) {
  QuantConfig config;
  config.global.activation_observer = name;
  return config;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_in(const std::string& part, const std::string& whole) {
  EXPECT_NE(whole.find(part), std::string::npos) << whole;
}

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

TEST(LegacyQuantizers, SetTheConfig) {
  const QuantConfig config =
      legacy_config(HistQuantizer(7, 512, 0.999), legacy_quantizer("AbsmaxQuantizer"));
  EXPECT_EQ(config.global.activation_observer, "hist");
  EXPECT_EQ(config.global.activation_bits, 7);
  EXPECT_EQ(config.hist_percent, 0.999);
  EXPECT_EQ(config.bins, 512);
  EXPECT_EQ(config.global.weight_observer, "abs_max");
  EXPECT_FALSE(bytes_of(flow(legacy_config(HistQuantizer(8, 1024, 0.9)))) ==
               bytes_of(flow(legacy_config(HistQuantizer(8, 1024, 0.999)))));
  expect_in("'KLQuantizer'", error_of([] { legacy_quantizer("KLQuantiser"); }));
  EXPECT_THROW(legacy_config(PerChannelAbsmaxQuantizer()), Error);
  EXPECT_THROW(legacy_config(KLQuantizer(), KLQuantizer()), Error);
}

QuantPostStaticOptions paddle_options(const std::string& out) {
  QuantPostStaticOptions options;
  options.model_dir = data_folder();
  options.save_model_path = out;
  options.data_loader = samples(0);
  options.batch_size = 4;
  options.batch_nums = 5;
  return options;
}

TEST(QuantPostStatic, LoaderAndGeneratorGiveTheSame) {
  const std::string path = out_path("static");
  QuantPostStaticOptions options = paddle_options(path);
  options.quantizable_op_type = {"conv2d", "conv2d_transpose"};
  const QuantizeReport report = quant_post_static(options, with_threads(1));
  EXPECT_EQ(report.calibration_samples, 20);
  const std::string bytes = bytes_of(load(path));

  const auto source = open_data(samples(0), Session(load(float_path())).inputs());
  std::int64_t next = 0;
  options.data_loader = {};
  options.batch_nums = 20;
  options.batch_generator = [&] { return std::optional(source->read(next++).inputs); };
  const QuantizeReport again = quant_post_static(options, with_threads(2));
  EXPECT_EQ(again.calibration_samples, 20);
  EXPECT_EQ(again.integer_nodes, report.integer_nodes);
  EXPECT_TRUE(bytes == bytes_of(load(path)));
  std::filesystem::remove(path);
}

TEST(QuantPostStatic, RefusesWithTheReason) {
  const auto refusal = [](const std::function<void(QuantPostStaticOptions&)>& change) {
    QuantPostStaticOptions options = paddle_options(out_path("refused"));
    change(options);
    return error_of([&] { quant_post_static(options, with_threads(1)); });
  };
  expect_in("did you mean 'mse'", refusal([](auto& o) { o.algo = "msee"; }));
  expect_in("adaround", refusal([](auto& o) { o.round_type = "adaround"; }));
  expect_in("onnx_format", refusal([](auto& o) { o.onnx_format = false; }));
  expect_in("params_filename", refusal([](auto& o) { o.params_filename = "p"; }));
  expect_in("data_loader.path", refusal([](auto& o) { o.data_loader = {}; }));
  expect_in("model_filename", refusal([](auto& o) { o.model_dir = data_folder() + "/.."; }));
  expect_in("tensorrt", refusal([](auto& o) { o.deploy_backend = "tensorrtt"; }));
  expect_in("'Conv'", refusal([](auto& o) { o.quantizable_op_type = {"Convv"}; }));
  expect_in("gave no batch", refusal([](auto& o) {
              o.data_loader = {};
              o.batch_generator = [] { return std::optional<TensorMap>(); };
            }));
  EXPECT_FALSE(std::filesystem::exists(out_path("refused")));
}

}  // namespace
}  // namespace quench
