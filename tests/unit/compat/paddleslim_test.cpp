// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's calls on the demo's network and images.
#include <gtest/gtest.h>

#include <algorithm>

#include "quench/paddleslim_analysis.h"
#include "support/fashion.h"

namespace quench {
namespace {

using namespace testing::fashion;

QuantPostStaticOptions paddle_options(const std::string& out) {
  QuantPostStaticOptions options;
  options.model_dir = data_folder();
  options.quantize_model_path = out;
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
  expect_in("adaround", refusal([](auto& o) { o.round_type = "adarond"; }));
  expect_in("onnx_format", refusal([](auto& o) { o.onnx_format = false; }));
  expect_in("save_params_filename", refusal([](auto& o) {
              o.quantize_model_path = std::filesystem::temp_directory_path().string();
              o.save_params_filename = "p";
            }));
  expect_in("data_loader", refusal([](auto& o) { o.data_loader = {}; }));
  expect_in("model-filename", refusal([](auto& o) { o.model_dir = data_folder() + "/.."; }));
  expect_in("read", refusal([](auto& o) {
              o.data_loader = {};
              o.round_type = "adaround";
              o.batch_generator = [] { return std::optional<TensorMap>(); };
            }));
  expect_in("tensorrt", refusal([](auto& o) { o.deploy_backend = "tensorrtt"; }));
  expect_in("'Conv'", refusal([](auto& o) { o.quantizable_op_type = {"Convv"}; }));
  expect_in("gave nothing", refusal([](auto& o) {
              o.data_loader = {};
              o.batch_generator = [] { return std::optional<TensorMap>(); };
            }));
  EXPECT_FALSE(std::filesystem::exists(out_path("refused")));
}

TEST(QuantPostStatic, SixOperatorTypesByDefault) {
  const std::string path = out_path("six");
  QuantPostStaticOptions options = paddle_options(path);
  const QuantizeReport six = quant_post_static(options, with_threads(1));
  options.is_full_quantize = true;
  const QuantizeReport all = quant_post_static(options, with_threads(1));
  EXPECT_LT(six.integer_nodes, all.integer_nodes);
  const auto layer_in_float = [](const FloatLayer& layer) {
    return layer.op_type == "Conv" || layer.op_type == "Gemm";
  };
  EXPECT_TRUE(std::ranges::none_of(six.float_layers, layer_in_float));
  std::filesystem::remove(path);
}

/// In a file of Paddle nothing but layers reads rounded numbers.
TEST(QuantPostStatic, RoundsWhatTheListedTypesRead) {
  const std::string folder = out_path("rounds") + ".d";
  QuantPostStaticOptions options = paddle_options(folder);
  options.save_model_filename = "model.pdmodel";
  quant_post_static(options, with_threads(1));
  const Model model = load(folder + "/model.pdmodel");
  const Uses uses(model.graph);
  int layers = 0;
  for (const Node& node : model.graph.nodes) {
    const bool layer = node.op_type == "Conv" || node.op_type == "MatMul" || node.op_type == "Gemm";
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || model.graph.constant(input) != nullptr) continue;
      const NodeId maker = uses.producer[static_cast<std::size_t>(input)];
      const bool rounded =
          maker >= 0 &&
          model.graph.nodes[static_cast<std::size_t>(maker)].op_type == "DequantizeLinear";
      layers += rounded && layer ? 1 : 0;
      EXPECT_TRUE(!rounded || layer) << node.name;
    }
  }
  EXPECT_GT(layers, 2);
  std::filesystem::remove_all(folder);
}

TEST(QuantPostStatic, SamplesWithoutABatchDimension) {
  const std::string path = out_path("samples");
  QuantPostStaticOptions options = paddle_options(path);
  quant_post_static(options, with_threads(1));
  const std::string bytes = bytes_of(load(path));
  const auto source = open_data(samples(0), Session(load(float_path())).inputs());
  options.data_loader = {};
  std::int64_t next = 0;
  options.sample_generator = [&] {
    TensorMap inputs = source->read(next++).inputs;
    inputs["image"] = inputs["image"].reshaped({1, 28, 28});
    return std::optional(inputs);
  };
  EXPECT_EQ(quant_post_static(options, with_threads(1)).calibration_samples, 20);
  EXPECT_EQ(next, 20);
  EXPECT_TRUE(bytes == bytes_of(load(path)));
  std::filesystem::remove(path);
}

TEST(QuantPostStatic, MakesTheFolder) {
  const std::string folder = out_path("folder") + ".d";
  QuantPostStaticOptions options = paddle_options(folder);
  options.batch_nums = 1;
  quant_post_static(options, with_threads(1));
  EXPECT_TRUE(std::filesystem::exists(folder + "/model.onnx"));
  options.save_model_filename = "other.onnx";
  quant_post_static(options, with_threads(1));
  EXPECT_TRUE(std::filesystem::exists(folder + "/other.onnx"));
  std::filesystem::remove_all(folder);
}

TEST(QuantPostStatic, PaddleFilesHaveTheNamesAskedFor) {
  const std::string folder = out_path("names") + ".d";
  QuantPostStaticOptions options = paddle_options(folder);
  options.batch_nums = 1;
  options.save_model_filename = "__model__";
  options.save_params_filename = "weights";
  quant_post_static(options, with_threads(1));
  EXPECT_TRUE(std::filesystem::exists(folder + "/__model__"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/weights"));
  std::filesystem::remove_all(folder);
}

/// The same samples as tensors in memory: every job takes them as it takes files.
DataOptions in_memory(std::int64_t count) {
  const auto source = open_data(samples(count), Session(load(float_path())).inputs());
  std::vector<TensorMap> all;
  for (std::int64_t i = 0; i < source->size(); ++i) all.push_back(source->read(i).inputs);
  return own_samples(std::move(all));
}

TEST(QuantPostStatic, SamplesOfTheCallersOwn) {
  const std::string path = out_path("own");
  QuantPostStaticOptions options = paddle_options(path);
  options.bias_correction = true;  // reads them twice
  quant_post_static(options, with_threads(1));
  const std::string bytes = bytes_of(load(path));
  options.data_loader = in_memory(0);
  quant_post_static(options, with_threads(1));
  EXPECT_TRUE(bytes == bytes_of(load(path)));
  options.data_loader = own_samples(std::vector<TensorMap>(4));
  expect_in("inputs of the model: 1 (image)", error_of([&] { quant_post_static(options); }));
  std::filesystem::remove(path);
}

TEST(Analysis, SaysWhatEachLayerCosts) {
  AnalysisOptions options;
  options.float_model_dir = data_folder();
  options.data_loader = in_memory(12);
  options.save_dir = out_path("analysis25") + ".d";
  const SensitivityResult found = Analysis(options, with_threads(1)).metric_error_analyse();
  ASSERT_GT(found.layers.size(), 1U);
  EXPECT_EQ(found.metric, "cosine");
  EXPECT_LE(found.layers.front().metric, found.layers.back().metric);
  std::ifstream text(options.save_dir + "/analysis.txt");
  std::string line;
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_EQ(line.find("layer name: " + found.layers.front().layer), 0U) << line;
  EXPECT_NE(line.find(", sensitivity metric: "), std::string::npos) << line;
  std::filesystem::remove_all(options.save_dir);
}

TEST(Analysis, RanksTheLayersOfAQuantisedModel) {
  const std::string quantised = out_path("quantised25");
  quant_post_static(paddle_options(quantised), with_threads(1));
  AnalysisOptions options;
  options.float_model_dir = data_folder();
  options.quant_model_dir = quantised;
  options.data_loader = in_memory(12);
  options.save_dir = out_path("analysis_of_quantised") + ".d";
  const Analysis analysis(options, with_threads(1));
  const SensitivityResult found = analysis.metric_error_analyse();
  ASSERT_GT(found.layers.size(), 1U);
  // The most harmful comes first: without its quantisation the outputs are nearest.
  EXPECT_GE(found.layers.front().metric, found.layers.back().metric);
  std::ifstream text(options.save_dir + "/analysis.txt");
  std::string line;
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_EQ(line.find("layer name: " + found.layers.front().layer), 0U) << line;
  expect_in("quant_model_dir", error_of([&] { (void)analysis.statistical_analyse(); }));
  expect_in("quant_model_dir", error_of([&] { (void)analysis.get_target_quant_model(0.9); }));

  AnalysisQatOptions trained;
  trained.quant_model_dir = quantised;
  trained.float_model_dir = data_folder();
  trained.data_loader = in_memory(12);
  trained.save_dir = options.save_dir;
  trained.quantizable_op_type = {"conv2d"};
  trained.qat_metric = 0.5;
  const SensitivityResult some = AnalysisQAT(trained, with_threads(1)).metric_error_analyse();
  EXPECT_LT(some.layers.size(), found.layers.size());
  for (const LayerSensitivity& layer : some.layers) EXPECT_EQ(layer.op_type, "Conv");
  EXPECT_EQ(some.quantized_metric, 0.5);
  trained.quantizable_op_type = {"conv2d_transpose"};
  expect_in("ConvTranspose",
            error_of([&] { AnalysisQAT(trained, with_threads(1)).metric_error_analyse(); }));
  std::filesystem::remove(quantised);
  std::filesystem::remove_all(options.save_dir);
}

/// 0.9 would be decibels.
TEST(AnalysisPTQ, ATargetNeedsAMetric) {
  AnalysisPtqOptions options;
  options.model_dir = data_folder();
  options.data_loader = in_memory(8);
  const AnalysisPTQ analysis(options, with_threads(1));
  expect_in("eval_function", error_of([&] { (void)analysis.get_target_quant_model(0.9); }));
}

TEST(AnalysisPTQ, OwnMetricAndTheKeysOfTheConfig) {
  AnalysisPtqOptions options;
  options.model_dir = data_folder();
  options.data_loader = samples(24);
  options.save_dir = out_path("analysis") + ".d";
  options.ptq_config.algo = "avg";
  options.ptq_config.batch_size = 4;
  options.ptq_config.batch_nums = 4;
  options.ptq_config.skip_tensor_list = {"last_weight"};
  std::size_t calls = 0;
  options.eval_function = [&](const Model& quantized) {
    ++calls;
    return static_cast<double>(quantized.graph.nodes.size());
  };
  const SensitivityResult found = AnalysisPTQ(options, with_threads(1)).metric_error_analyse();
  EXPECT_GE(calls, found.layers.size());
  for (const LayerSensitivity& layer : found.layers) EXPECT_NE(layer.op_type, "Gemm");
  // A checkpoint of other settings is in nobody's way where nothing is resumed.
  options.ptq_config.batch_nums = 3;
  EXPECT_NO_THROW((void)AnalysisPTQ(options, with_threads(1)).metric_error_analyse());
  options.ptq_config.algo = "avgg";
  expect_in("'avg'", error_of([&] { AnalysisPTQ analysis(options); }));

  // What analysis.txt names is what skip_tensor_list takes.
  std::ifstream text(options.save_dir + "/analysis.txt");
  std::string line;
  ASSERT_TRUE(std::getline(text, line));
  const std::string before = "quant layer name: ";
  const std::string name = line.substr(before.size(), line.find(", eval metric: ") - before.size());
  const std::string path = out_path("skipped");
  QuantPostStaticOptions quantise = paddle_options(path);
  quantise.skip_tensor_list = {name};
  const QuantizeReport report = quant_post_static(quantise, with_threads(1));
  EXPECT_EQ(std::ranges::count(report.float_layers, name, &FloatLayer::node), 1) << name;
  std::filesystem::remove(path);
  std::filesystem::remove_all(options.save_dir);
}

}  // namespace
}  // namespace quench
