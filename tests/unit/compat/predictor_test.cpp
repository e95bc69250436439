// SPDX-License-Identifier: Apache-2.0
// Paddle Inference's predictor on the demo's network.
#include "quench/predictor.h"

#include <gtest/gtest.h>

#include "quench/data.h"
#include "quench/error.h"
#include "support/paths.h"

namespace quench {
namespace {

std::string data_folder() { return (testing::source_dir() / "examples/data").string(); }
std::string float_path() { return data_folder() + "/fashion.onnx"; }

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

void expect_error(const std::string& part, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

Config config() {
  Config config(float_path());
  config.context().module_dir = testing::binary_dir().string();
  config.set_cpu_math_library_num_threads(1);
  return config;
}

TEST(Predictor, RunsAsASessionDoes) {
  const auto predictor = create_predictor(config());
  ASSERT_EQ(predictor->get_input_names(), std::vector<std::string>{"image"});
  ASSERT_EQ(predictor->get_output_names(), std::vector<std::string>{"scores"});
  const auto input = predictor->get_input_handle("image");
  const auto output = predictor->get_output_handle("scores");
  EXPECT_EQ(input->shape(), (Shape{-1, 1, 28, 28}));
  EXPECT_EQ(input->type(), DType::Float32);
  Session session(load(float_path()), {}, with_threads(1));
  const auto source = open_data(samples(3), session.inputs());
  for (const std::int64_t index : {0, 2}) {
    const TensorMap sample = source->read(index).inputs;
    const auto pixels = sample.at("image").data<float>();
    input->reshape({1, 1, 28, 28});
    input->copy_from_cpu(pixels);
    predictor->run();
    EXPECT_EQ(output->shape(), (Shape{1, 10}));
    const auto wanted = session.run(sample);
    const auto scores = wanted.at("scores").data<float>();
    EXPECT_EQ(output->copy_to_cpu<float>(), std::vector<float>(scores.begin(), scores.end()));
  }
  // Another batch: the shape is said again.
  input->reshape({2, 1, 28, 28});
  input->copy_from_cpu(std::vector<float>(std::size_t{2} * 28 * 28, 0.5F));
  predictor->run();
  EXPECT_EQ(output->copy_to_cpu<float>().size(), 20U);
}

TEST(Predictor, TakesAProgramAndItsParameters) {
  const auto folder = testing::shared_dir() / "models/paddle/ch_ppocr_mobile_v2.0_cls";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there is no " << folder;
  const auto answers = [](Config config) {
    config.context().module_dir = testing::binary_dir().string();
    const auto predictor = create_predictor(config);
    const auto input = predictor->get_input_handle("x");
    input->reshape({1, 3, 48, 192});
    input->copy_from_cpu(std::vector<float>(std::size_t{3} * 48 * 192, 0.25F));
    predictor->run();
    const auto names = predictor->get_output_names();
    return predictor->get_output_handle(names.front())->copy_to_cpu<float>();
  };
  const auto wanted = answers(Config(folder.string()));
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_NEAR(wanted[0] + wanted[1], 1, 1e-5);
  const auto program = (folder / "inference.pdmodel").string();
  EXPECT_EQ(answers(Config(program, (folder / "inference.pdiparams").string())), wanted);
  EXPECT_EQ(answers(Config(program, "inference.pdiparams")), wanted);
}

TEST(Predictor, SaysWhatIsMissing) {
  expect_error("names no model", [] { create_predictor({}); });
  const auto predictor = create_predictor(config());
  expect_error("did you mean 'image'", [&] { predictor->get_input_handle("imagee"); });
  expect_error("copy_from_cpu", [&] { predictor->run(); });
  const auto input = predictor->get_input_handle("image");
  expect_error("reshape()", [&] { input->copy_from_cpu(std::vector<float>(784)); });
  const auto output = predictor->get_output_handle("scores");
  expect_error("holds nothing yet", [&] { output->copy_to_cpu<float>(); });
  Config wrong;
  expect_error("at least 0", [&] { wrong.set_cpu_math_library_num_threads(-1); });
}

}  // namespace
}  // namespace quench
