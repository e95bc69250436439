// SPDX-License-Identifier: Apache-2.0
// Real data sets, against numbers computed once by other programs (NumPy, OpenCV from Python).
#include <array>
#include <cmath>

#include "support/paths.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::floats;
using testing::input;

struct SharedData : ::testing::Test {
  void SetUp() override {
    if (!std::filesystem::is_directory(testing::shared_dir() / "data")) {
      GTEST_SKIP() << "no data sets under " << testing::shared_dir();
    }
    context.module_dir = testing::binary_dir().string();
  }
  static std::string path(const std::string& name) {
    return (testing::shared_dir() / "data" / name).string();
  }

  DataOptions options;
  Context context;
};

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

void expect_points(const std::vector<float>& image, const std::vector<double>& wanted) {
  const std::vector<std::array<std::size_t, 3>> points = {
      {0, 0, 0}, {1, 100, 50}, {2, 223, 223}, {0, 120, 200}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [c, y, x] = points[i];
    EXPECT_NEAR(static_cast<double>(image[(c * 224 + y) * 224 + x]), wanted[i], 1e-4) << i;
  }
}

TEST_F(SharedData, ImageNetStyle) {
  options.path = path("imagenet-mini/eval");
  options.labels = path("imagenet-mini/eval_labels.txt");
  options.image.resize_shorter = 256;
  options.image.center_crop = ImageSize{224, 224};
  options.image.mean = {123.675, 116.28, 103.53};
  options.image.std = {58.395, 57.12, 57.375};
  const auto source = open_data(options, {input("x", DType::Float32, {-1, 3, 224, 224})}, context);
  ASSERT_EQ(source->size(), 400);
  const Sample first = source->read(0);
  EXPECT_EQ(first.name, "n01440764_tench.jpg");
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(source->read(2).label, 5);
  const std::vector<float> pixels = floats(first.inputs.at("x"));
  expect_points(pixels, {-0.81642, 0.17017, -0.18353, 1.95779});
  EXPECT_NEAR(mean_of(pixels), -0.0042346, 1e-5);
}

TEST_F(SharedData, MindSporeStyle) {
  options.path = path("imagenet-mini/eval");
  options.image.color = ColorOrder::Bgr;
  options.image.normalize = NormalizeOrder::First;
  options.image.resize = ImageSize{256, 256};
  options.image.center_crop = ImageSize{224, 224};
  options.image.mean = {127.5, 127.5, 127.5};
  options.image.std = {127.5, 127.5, 127.5};
  const auto source = open_data(options, {input("x", DType::Float32, {-1, 3, 224, 224})}, context);
  EXPECT_FALSE(source->has_labels());
  const std::vector<float> pixels = floats(source->read(0).inputs.at("x"));
  expect_points(pixels, {-0.36812, -0.10714, -0.40734, -0.42083});
  EXPECT_NEAR(mean_of(pixels), -0.1428217, 1e-5);
}

TEST_F(SharedData, Cifar) {
  options.path = path("cifar10/test_batch.bin");
  const auto source = open_data(options, {input("x", DType::Float32, {-1, 3, 32, 32})});
  ASSERT_EQ(source->size(), 2000);
  EXPECT_EQ(source->read(4).label, 6);
  EXPECT_EQ(source->read(1999).label, 5);
  const std::vector<float> pixels = floats(source->read(7).inputs.at("x"));
  EXPECT_EQ(pixels[0], 83);
  EXPECT_EQ(pixels[1024 + 5 * 32 + 17], 94);
  EXPECT_EQ(pixels[3071], 22);
  EXPECT_NEAR(mean_of(pixels), 86.755208, 1e-4);
}

TEST_F(SharedData, SpeechFeaturesAndTokens) {
  options.path = path("kws/eval_x.npy");
  options.labels = path("kws/eval_y.npy");
  const auto speech = open_data(options, {input("x", DType::Float32, {-1, 1, 49, 10})});
  ASSERT_EQ(speech->size(), 400);
  EXPECT_EQ(speech->read(3).label, 4);
  EXPECT_FLOAT_EQ(floats(speech->read(3).inputs.at("x"))[2], 1.7541091F);
  options = {};
  options.path = "input_ids:" + path("stsb/dev_input_ids.npy") +
                 ",attention_mask:" + path("stsb/dev_attention_mask.npy");
  const auto text = open_data(options, {input("input_ids", DType::Int64, {-1, -1}),
                                        input("attention_mask", DType::Int64, {-1, -1})});
  ASSERT_EQ(text->size(), 3000);
  const Sample sample = text->read(5);
  EXPECT_EQ(sample.inputs.at("input_ids").shape(), (Shape{1, 64}));
  EXPECT_EQ(sample.inputs.at("input_ids").data<std::int64_t>()[3], 2508);
  EXPECT_EQ(sample.inputs.at("attention_mask").data<std::int64_t>()[10], 1);
  EXPECT_EQ(sample.inputs.at("attention_mask").data<std::int64_t>()[11], 0);
}

TEST(FashionMnist, ComesFromItsDebianPackage) {
  const std::string path = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  DataOptions options;
  options.path = path;
  const auto source = open_data(options, {input("x", DType::Float32, {-1, 1, 28, 28})});
  ASSERT_EQ(source->size(), 10000);
  EXPECT_EQ(source->read(0).label, 9);
  EXPECT_EQ(source->read(4).label, 6);
  EXPECT_NEAR(mean_of(floats(source->read(2).inputs.at("x"))), 65.7142857, 1e-5);
}

}  // namespace
}  // namespace quench
