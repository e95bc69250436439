// SPDX-License-Identifier: Apache-2.0
// Training of the demo's network: it gets nearer to float, can be stopped and gone on with, and
// refuses what it cannot do with a sentence that says why.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "quench/error.h"
#include "quench/quantize.h"
#include "support/fashion.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace quench {
namespace {

namespace fs = std::filesystem;
using namespace testing::fashion;

/// Weights of three bits: post-training quantisation alone is far off.
QuantizeOptions training_options() {
  QuantizeOptions options;
  options.data = samples(300);
  options.config.global.weight_bits = 3;
  options.training.steps = 24;
  options.training.batch = 32;
  options.held_out = 60;
  return options;
}

std::string file_path(const std::string& name) {
  static const testing::TempFolder folder;
  return folder.path(name);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string refusal(const QuantizeOptions& options, const std::string& model = float_path()) {
  try {
    quantize(model, file_path("refused.onnx"), options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Training, GetsNearerToFloat) {
  const QuantizeReport report = quantize(float_path(), file_path("near.onnx"), training_options());
  const TrainingReport& training = report.training;
  ASSERT_TRUE(training.start_score.has_value());
  EXPECT_GT(training.best_step, 0);
  ASSERT_FALSE(training.curve.empty());
  double best = *training.start_score;
  for (const TrainingPoint& point : training.curve)
    best = std::max(best, point.score.value_or(best));
  EXPECT_GT(best, *training.start_score + 1) << "in dB";
  // What was validated is what was written.
  EXPECT_NEAR(report.outputs.at(0).scores.at("sqnr"), best, 0.2);
}

TEST(Training, GoesOnWithTheSameResult) {
  QuantizeOptions options = training_options();
  options.training.checkpoint_steps = 5;
  Context context;
  context.threads = 1;
  quantize(float_path(), file_path("whole.onnx"), options, context);

  options.training.checkpoint = file_path("stopped.checkpoint");
  fs::remove(options.training.checkpoint);
  std::atomic<bool> stop = false;
  Context stopped = context;
  stopped.cancel = &stop;
  stopped.progress = [&](const Progress& progress) {
    if (progress.phase.starts_with("training") && progress.done >= 13) stop = true;
  };
  EXPECT_THROW(quantize(float_path(), file_path("resumed.onnx"), options, stopped), Error);
  ASSERT_TRUE(fs::exists(options.training.checkpoint));
  options.training.resume = true;
  quantize(float_path(), file_path("resumed.onnx"), options, context);
  EXPECT_EQ(contents(file_path("whole.onnx")), contents(file_path("resumed.onnx")));

  options.training.rate = 0.001;
  EXPECT_NE(refusal(options).find("of another model or other settings"), std::string::npos);
  std::ofstream(options.training.checkpoint, std::ios::binary) << "no checkpoint";
  EXPECT_NE(refusal(options).find("damaged"), std::string::npos);
}

TEST(Training, ByLabelsAndWithBatchNormalisation) {
  QuantizeOptions options = training_options();
  options.config.global.weight_bits = 4;
  options.training.loss = "labels";
  options.training.freeze_norm = 12;
  const QuantizeReport report = quantize(float_path(), file_path("labels.onnx"), options);
  EXPECT_EQ(report.training.score_name, "top1");
  // While normalised with each batch's statistics, and when those are frozen.
  for (const TrainingPoint& point : report.training.curve) {
    EXPECT_GT(point.score.value_or(100), 70) << "step " << point.step;
  }
}

TEST(Training, EveryQuanterTrains) {
  for (const auto& [weights, activations] :
       {std::pair{"lsq_plus", "lsq_plus"}, std::pair{"abs_max", "moving_average_abs_max"},
        std::pair{"channel_wise_abs_max", "pact"}, std::pair{"fixed", "range_abs_max"}}) {
    QuantizeOptions options = training_options();
    options.config.global.weight_bits = 4;
    options.training.steps = 6;
    options.training.weight_quanter = weights;
    options.training.activation_quanter = activations;
    const QuantizeReport report = quantize(float_path(), file_path("quanters.onnx"), options);
    EXPECT_EQ(report.training.steps, 6) << weights << " " << activations;
  }
}

TEST(Training, ReconstructionGetsNearerToFloat) {
  for (const bool blocks : {false, true}) {
    QuantizeOptions options = training_options();
    options.config.global.weight_bits = 3;
    options.training = {};
    options.training.adaround = !blocks;
    options.training.reconstruct = blocks;
    options.training.reconstruct_steps = 60;
    const QuantizeReport report = quantize(float_path(), file_path("rounded.onnx"), options);
    EXPECT_GT(report.training.blocks, 3);
    ASSERT_TRUE(report.training.start_score.has_value());
    EXPECT_GT(report.training.best_step, 0);
    EXPECT_GT(report.outputs.at(0).scores.at("sqnr"), *report.training.start_score + 1);
  }
}

TEST(Training, RefusesWithASentence) {
  QuantizeOptions options = training_options();
  options.training.batch = 5000;
  EXPECT_NE(refusal(options).find("--train-batch 240"), std::string::npos) << refusal(options);

  options = training_options();
  options.training.rate = 1e30;
  const std::string diverged = refusal(options);
  EXPECT_NE(diverged.find("the loss is not a number at step"), std::string::npos) << diverged;

  options = training_options();
  options.training.weight_quanter = "lsk";
  EXPECT_NE(refusal(options).find("no quanter is called 'lsk'"), std::string::npos);

  options = training_options();
  options.data.path.clear();
  EXPECT_NE(refusal(options).find("--data"), std::string::npos);
}

TEST(Training, RefusesLabelsThatDoNotFit) {
  const std::string labels = file_path("labels.npy");
  std::vector<std::int64_t> classes(1000, 99);
  write_npy(Tensor::of<std::int64_t>({1000}, classes), labels);
  QuantizeOptions options = training_options();
  options.data.labels = labels;
  testing::fashion::expect_in(
      "label 99 is out of range: the model's output 'scores' has 10 classes", refusal(options));
}

TEST(Training, NamesNodesWithoutGradient) {
  Model model = load(float_path());
  // The scores go through a node that only says which is greatest.
  Graph& graph = model.graph;
  const ValueId scores = graph.outputs[0];
  Node& greatest = graph.add_node("ArgMax", {scores}, {"which"});
  greatest.set("axis", std::int64_t{1});
  Node& cast = graph.add_node("Cast", {graph.find("which")}, {"answer"});
  cast.set("to", std::int64_t{1});
  graph.outputs = {graph.find("answer")};
  const std::string path = file_path("argmax.onnx");
  save(model, path);
  testing::fashion::expect_in("have no gradient", refusal(training_options(), path));
  testing::fashion::expect_in("which", refusal(training_options(), path));
}

}  // namespace
}  // namespace quench
