// SPDX-License-Identifier: Apache-2.0
// Models of other frameworks compute here what they compute there: against plain loops, against the
// same network in another format, and against recorded outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "data/npy.h"
#include "formats/graph_maker.h"
#include "formats/mindir/file.h"
#include "formats/tflite/write/writer.h"
#include "quench/session.h"
#include "support/paths.h"
#include "unit/formats/caffe_builder.h"
#include "unit/formats/tf_builder.h"
#include "unit/formats/tflite_builder.h"

namespace quench::testing {
namespace {

namespace fs = std::filesystem;

/// The largest difference, relative to the largest number.
float distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  if (a.shape() != b.shape()) return 1;
  const std::vector<float> x = to_float(a), y = to_float(b);
  float most = 0, largest = 1e-9F;
  for (std::size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(x[i]));
  }
  return most / largest;
}

/// What `one_conv` means, in TFLite's own layout.
Tensor plain_conv(const Tensor& x, const Tensor& w, const Tensor& b) {
  Tensor y = Tensor::zeros(DType::Float32, {1, 3, 3, 4});
  const auto out = y.mutable_data<float>();
  for (int h = 0; h < 3; ++h) {
    for (int v = 0; v < 3; ++v) {
      for (int c = 0; c < 4; ++c) {
        float sum = b.data<float>()[static_cast<std::size_t>(c)];
        for (int i = 0; i < 18; ++i) {
          const int at_h = 2 * h - 1 + i / 6, at_v = 2 * v - 1 + i / 2 % 3;
          if (at_h < 0 || at_h > 4 || at_v < 0 || at_v > 4) continue;
          sum += x.data<float>()[static_cast<std::size_t>((at_h * 5 + at_v) * 2 + i % 2)] *
                 w.data<float>()[static_cast<std::size_t>(c * 18 + i)];
        }
        out[static_cast<std::size_t>((h * 3 + v) * 4 + c)] = std::max(sum, 0.0F);
      }
    }
  }
  return y;
}

TEST(ForeignRun, TfliteConvolutionIsThatOfPlainLoops) {
  const TfliteBuilder builder = one_conv();
  const Tensor x = counting({1, 5, 5, 2}, 0.07F);
  const TensorMap out = Session(builder.read()).run({{"x", x}});
  const Tensor wanted =
      plain_conv(x, *builder.program.tensors[1].data, *builder.program.tensors[2].data);
  EXPECT_LT(distance(wanted, out.at("y")), 1e-5F);
}

TEST(ForeignRun, TensorFlowConvolutionIsThatOfPlainLoops) {
  const Tensor x = counting({1, 5, 5, 2}, 0.07F);
  const Tensor w = counting({4, 3, 3, 2}), b = counting({4});
  const Model model = tf_conv(permuted(w, {1, 2, 3, 0}), b).read();
  const TensorMap out = Session(model).run({{"x", x}});
  EXPECT_LT(distance(plain_conv(x, w, b), out.at("y")), 1e-5F);
}

TEST(ForeignRun, MindirGivesWhatWasRecordedAlsoWhenWrittenAgain) {
  const fs::path folder = shared_dir() / "data/mindir-golden";
  if (!fs::exists(folder)) GTEST_SKIP() << "no shared folder";
  const std::string record = (folder / "small_cnn_golden.npz").string();
  const Tensor wanted = data::read_npz(record, "output");
  const Model model = load((folder / "small_cnn.mindir").string());
  const std::string bytes = mindir::write_bytes(model);
  const Model again = mindir::read_bytes(std::as_bytes(std::span(bytes)), "again.mindir");
  EXPECT_EQ(model.graph.nodes.size(), again.graph.nodes.size());
  for (const Model* each : {&model, &again}) {
    const TensorMap out = Session(*each).run({{"x", data::read_npz(record, "input")}});
    EXPECT_LT(distance(wanted, out.begin()->second), 1e-4F);
  }
}

TEST(ForeignRun, WrittenTfliteFileGivesTheSameAgain) {
  const Model model = one_conv().read();
  const Tensor x = counting({1, 5, 5, 2}, 0.07F);
  const std::string bytes = tflite::write_program(tflite::write::to_program(model));
  const Model again = TfliteBuilder::read(bytes);
  // Its input is channels last, as before: the Transposes at both ends were undone.
  EXPECT_EQ(again.graph.nodes.size(), model.graph.nodes.size());
  const TensorMap before = Session(model).run({{"x", x}});
  const TensorMap after = Session(again).run({{"x", x}});
  EXPECT_EQ(before.at("y"), after.at("y"));
}

TEST(ForeignRun, CaffeAverageCountsPaddingButNothingBehindIt) {
  // Three pixels a window, two apart, one of padding: the last reaches a pixel past the padding.
  const Model model = read_caffe(caffe_net(
      "dim: 1 dim: 1 dim: 4 dim: 1",
      "layer { name: \"p\" type: \"Pooling\" bottom: \"data\" top: \"p\" pooling_param { pool: AVE "
      "kernel_h: 3 kernel_w: 1 stride_h: 2 pad_h: 1 } }"));
  const Tensor x = Tensor::of<float>({1, 1, 4, 1}, {3, 6, 12, 18});
  const TensorMap out = Session(model).run({{"data", x}});
  const auto y = out.at("p").data<float>();
  ASSERT_EQ(y.size(), 3U);
  EXPECT_FLOAT_EQ(y[0], 3);   // (padding + 3 + 6) / 3
  EXPECT_FLOAT_EQ(y[1], 12);  // (6 + 12 + 18) / 3
  EXPECT_FLOAT_EQ(y[2], 9);   // (18 + padding) / 2
}

TEST(ForeignRun, CaffeDetectionsAreTheBestBoxes) {
  const std::string text =
      "layer { name: \"loc\" type: \"Input\" top: \"loc\" input_param { shape { dim: 1 dim: 8 } } }"
      "layer { name: \"conf\" type: \"Input\" top: \"conf\" input_param { shape { dim: 1 dim: 4 } "
      "} }"
      "layer { name: \"prior\" type: \"Input\" top: \"prior\" "
      "input_param { shape { dim: 1 dim: 2 dim: 8 } } }"
      "layer { name: \"out\" type: \"DetectionOutput\" bottom: \"loc\" bottom: \"conf\" "
      "bottom: \"prior\" top: \"out\" detection_output_param { num_classes: 2 "
      "nms_param { nms_threshold: 0.45 top_k: 10 } code_type: CENTER_SIZE keep_top_k: 5 "
      "confidence_threshold: 0.1 } }";
  const Model model = read_caffe(text);
  const TensorMap out = Session(model).run(
      {{"loc", Tensor::zeros(DType::Float32, {1, 8})},
       {"conf", Tensor::of<float>({1, 4}, {0.1F, 0.9F, 0.3F, 0.7F})},
       {"prior", Tensor::of<float>({1, 2, 8}, {0.1F, 0.1F, 0.4F, 0.4F, 0.5F, 0.5F, 0.9F, 0.9F, 0.1F,
                                               0.1F, 0.2F, 0.2F, 0.1F, 0.1F, 0.2F, 0.2F})}});
  const Tensor& found = out.at("out");
  ASSERT_EQ(found.shape(), (Shape{1, 1, 2, 7}));
  EXPECT_FLOAT_EQ(found.data<float>()[1], 1);     // class
  EXPECT_FLOAT_EQ(found.data<float>()[2], 0.9F);  // score
  EXPECT_NEAR(found.data<float>()[3], 0.1F, 1e-6);
  EXPECT_NEAR(found.data<float>()[7 + 6], 0.9F, 1e-6);
}

TEST(ForeignRun, CaffeNetworkGivesWhatWasRecorded) {
  const fs::path net = shared_dir() / "models/rfb320/RFB-320.prototxt";
  const fs::path record = shared_dir() / "data/caffe-golden/rfb320_caffe_cv2.npz";
  if (!fs::exists(record)) GTEST_SKIP() << "no shared folder";
  const auto member = [&](const char* name) { return data::read_npz(record.string(), name); };
  const TensorMap out = Session(load(net.string())).run({{"input", member("input")}});
  for (const char* name : {"out0", "out1"}) {
    const Tensor wanted = member(name);
    const bool any = std::ranges::any_of(out, [&](const auto& each) {
      return each.second.shape() == wanted.shape() && distance(wanted, each.second) < 1e-4F;
    });
    EXPECT_TRUE(any) << name;
  }
}

/// The twin ends before its Softmax.
Tensor shares_of(const Tensor& logits) {
  Tensor result = logits;
  const auto numbers = result.mutable_data<float>();
  const float most = *std::ranges::max_element(numbers);
  float sum = 0;
  for (float& each : numbers) sum += each = std::exp(each - most);
  for (float& each : numbers) each /= sum;
  return result;
}

TEST(ForeignRun, TfliteTwinOfAnOnnxFileGivesTheSame) {
  const fs::path models = shared_dir() / "models";
  if (!fs::exists(models / "tflite")) GTEST_SKIP() << "no shared folder";
  const Tensor x = counting({1, 32, 32, 3}, 0.013F);
  Tensor first = Tensor::zeros(DType::Float32, {1, 3, 32, 32});
  const auto to = first.mutable_data<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = x.data<float>()[i % 1024 * 3 + i / 1024];
  }
  const TensorMap twin =
      Session(load((models / "resnet8_cifar10_bn.onnx").string())).run({{"input", first}});
  const TensorMap out = Session(load((models / "tflite/resnet8_cifar10_float.tflite").string()))
                            .run({{"input_1", x}});
  EXPECT_LT(distance(shares_of(twin.begin()->second), out.begin()->second), 1e-4F);
}

}  // namespace
}  // namespace quench::testing
