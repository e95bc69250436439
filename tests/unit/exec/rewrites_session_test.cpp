// SPDX-License-Identifier: Apache-2.0
// Trained models give the same results with every pass and fast kernel as with none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "quench/session.h"
#include "support/paths.h"

namespace quench::testing {
namespace {

/// A sample for an input: unknown dimensions are 1 for the batch and 64 elsewhere.
Tensor sample(const Value& input) {
  Shape shape;
  for (const Dim& dim : *input.type.shape) {
    shape.push_back(dim.known() ? dim.value : (shape.empty() ? 1 : 64));
  }
  Tensor result = Tensor::zeros(input.type.dtype, shape);
  std::mt19937 engine(3);
  if (input.type.dtype == DType::Int64) {
    for (std::int64_t& each : result.mutable_data<std::int64_t>()) {
      each = input.name == "attention_mask" ? 1 : static_cast<std::int64_t>(engine() % 8000);
    }
    return result;
  }
  std::normal_distribution<float> pick;
  for (float& each : result.mutable_data<float>()) each = pick(engine);
  return result;
}

/// The largest difference, relative to the largest element.
double error_of(const Tensor& got, const Tensor& wanted) {
  const std::vector<float> a = to_float(got);
  const std::vector<float> b = to_float(wanted);
  if (a.size() != b.size() || got.shape() != wanted.shape()) return INFINITY;
  double difference = 0;
  double largest = 1e-6;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference / largest;
}

class SharedModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SharedModel, FusedEqualsPlain) {
  const auto path = shared_dir() / "models" / GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared models";
  Session plain(load(path.string()), {.reference = true});
  TensorMap feeds;
  for (const Value& input : plain.inputs()) feeds[input.name] = sample(input);
  const TensorMap wanted = plain.run(feeds);
  const TensorMap got = Session(load(path.string())).run(feeds);
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) {
    EXPECT_LT(error_of(got.at(name), tensor), 2e-4) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedModel,
                         ::testing::Values("ad01_autoencoder_bn.onnx", "dscnn_kws_bn.onnx",
                                           "mobilenet_v1_025_vww_bn.onnx", "mobilenet_v2.onnx",
                                           "mobilenet_v2_bn_features.onnx",
                                           "pplcnet_x0_25_textline_ori.onnx", "ppocr_v2_cls.onnx",
                                           "ppocrv4_det.onnx", "resnet8_cifar10_bn.onnx",
                                           "squeezenet1.1.onnx", "use_lite.onnx",
                                           "rfb320/rfb320.onnx"));

}  // namespace
}  // namespace quench::testing
