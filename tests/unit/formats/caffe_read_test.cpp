// SPDX-License-Identifier: Apache-2.0
// What Caffe's layers become, and what is said of files that do not fit.
#include <gtest/gtest.h>

#include <algorithm>

#include "quench/error.h"
#include "unit/formats/caffe_builder.h"

namespace quench::testing {
namespace {

constexpr const char* kImage = "dim: 1 dim: 2 dim: 6 dim: 6";

const Node& first(const Model& model, std::string_view op_type) {
  return *std::ranges::find(model.graph.nodes, op_type, &Node::op_type);
}

template <typename Read>
std::string complaint(const Read& read) {
  try {
    (void)read();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal);
    return error.what();
  }
  return "";
}

Shape output_shape(const Model& model) {
  return *model.graph[model.graph.outputs.at(0)].type.static_shape();
}

constexpr const char* kConv =
    "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\" top: \"conv\" "
    "convolution_param { num_output: 3 kernel_size: 3 pad: 1 stride: 2 bias_term: false } }";

CaffeBlobs conv_blobs() { return {{"conv", {Tensor::zeros(DType::Float32, {3, 2, 3, 3})}}}; }

TEST(CaffeRead, ConvolutionTakesItsWeights) {
  const Model model = read_caffe(caffe_net(kImage, kConv), conv_blobs());
  EXPECT_EQ(first(model, "Conv").get_ints("pads"), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(output_shape(model), (Shape{1, 3, 3, 3}));
  EXPECT_EQ(model.graph[model.graph.outputs[0]].name, "conv");
}

TEST(CaffeRead, LayersInPlaceKeepTheBlobsName) {
  const std::string relu = "layer { name: \"relu\" type: \"ReLU\" bottom: \"conv\" top: \"conv\" }";
  const Model model = read_caffe(caffe_net(kImage, kConv + relu), conv_blobs());
  ASSERT_EQ(model.graph.outputs.size(), 1U);
  EXPECT_EQ(model.graph[model.graph.outputs[0]].name, "conv");
  EXPECT_EQ(model.graph.nodes.back().op_type, "Relu");
}

TEST(CaffeRead, PoolsRoundUp) {
  const auto pool = [](const std::string& how) {
    return caffe_net("dim: 1 dim: 2 dim: 7 dim: 7",
                     "layer { name: \"p\" type: \"Pooling\" bottom: \"data\" top: \"p\" "
                     "pooling_param { " +
                         how + " } }");
  };
  EXPECT_EQ(output_shape(read_caffe(pool("pool: MAX kernel_size: 2 stride: 2"))),
            (Shape{1, 2, 4, 4}));
  EXPECT_EQ(output_shape(read_caffe(pool("pool: AVE kernel_size: 3 stride: 2 pad: 1"))),
            (Shape{1, 2, 4, 4}));
  EXPECT_EQ(output_shape(read_caffe(pool("pool: AVE global_pooling: true"))), (Shape{1, 2, 1, 1}));
}

TEST(CaffeRead, BatchNormDividesByItsFactor) {
  const Model model = read_caffe(
      caffe_net(kImage,
                "layer { name: \"bn\" type: \"BatchNorm\" bottom: \"data\" top: \"data\" }"),
      {{"bn",
        {Tensor::of<float>({2}, {2, 4}), Tensor::of<float>({2}, {8, 16}),
         Tensor::of<float>({1}, {2})}}});
  const Node& node = first(model, "BatchNormalization");
  EXPECT_EQ(model.graph.constant(node.inputs[3])->data<float>()[1], 2);
  EXPECT_EQ(model.graph.constant(node.inputs[4])->data<float>()[0], 4);
}

TEST(CaffeRead, PriorBoxesAreConstants) {
  const Model model = read_caffe(caffe_net(
      "dim: 1 dim: 2 dim: 2 dim: 2",
      "layer { name: \"prior\" type: \"PriorBox\" bottom: \"data\" bottom: \"data\" top: \"prior\" "
      "prior_box_param { min_size: 1 max_size: 4 aspect_ratio: 2 flip: true clip: true "
      "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }"));
  // A size, the one between it and the greatest, and two ratios: four boxes for each of 4 cells.
  EXPECT_EQ(output_shape(model), (Shape{1, 2, 64}));
  const Tensor& boxes = *model.graph.constant(model.graph.nodes.back().inputs[0]);
  EXPECT_FLOAT_EQ(boxes.data<float>()[2], 0.5F);
  EXPECT_FLOAT_EQ(boxes.data<float>()[64 + 2], 0.2F);
}

TEST(CaffeRead, OldFilesAreRead) {
  const Model model = read_caffe(
      "input: \"data\" input_dim: 1 input_dim: 4 input_dim: 1 input_dim: 1\n"
      "layers { name: \"ip\" type: INNER_PRODUCT bottom: \"data\" top: \"ip\" "
      "inner_product_param { num_output: 2 } blobs_lr: 1 }\n"
      "layers { name: \"prob\" type: SOFTMAX bottom: \"ip\" top: \"prob\" }",
      {{"ip", {Tensor::zeros(DType::Float32, {1, 1, 2, 4}), Tensor::of<float>({2}, {1, 2})}}});
  EXPECT_EQ(output_shape(model), (Shape{1, 2}));
  EXPECT_EQ(model.graph.nodes.back().op_type, "Softmax");
}

TEST(CaffeRead, LayersOfTrainingAreLeftOut) {
  const std::string loss =
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"conv\" top: \"loss\" "
      "include { phase: TRAIN } }";
  EXPECT_EQ(read_caffe(caffe_net(kImage, kConv + loss), conv_blobs()).graph.nodes.size(), 1U);
}

TEST(CaffeRead, UnknownLayersAreNamedTogether) {
  const std::string message = complaint([] {
    return read_caffe(caffe_net(
        kImage, "layer { name: \"a\" type: \"Python\" } layer { name: \"b\" type: \"Mystery\" }"));
  });
  EXPECT_NE(message.find("Mystery, Python"), std::string::npos) << message;
}

TEST(CaffeRead, WeightsOfAnotherNetworkAreTold) {
  const CaffeBlobs other = {{"other", {Tensor::zeros(DType::Float32, {1})}}};
  EXPECT_NE(complaint([&] {
              return read_caffe(caffe_net(kImage, kConv), other);
            }).find("another network"),
            std::string::npos);
  const CaffeBlobs wrong = {{"conv", {Tensor::zeros(DType::Float32, {3, 5, 3, 3})}}};
  const std::string message =
      complaint([&] { return read_caffe(caffe_net(kImage, kConv), wrong); });
  EXPECT_NE(message.find("layer 'conv'"), std::string::npos) << message;
  EXPECT_NE(message.find("3x5x3x3"), std::string::npos) << message;
}

TEST(CaffeRead, UnknownParametersAreNotPassedOver) {
  const std::string message = complaint([] {
    return read_caffe(caffe_net(kImage,
                                "layer { name: \"c\" type: \"Convolution\" bottom: \"data\" "
                                "top: \"c\" convolution_param { num_output: 1 shear: 3 } }"));
  });
  EXPECT_NE(message.find("shear"), std::string::npos) << message;
}

TEST(CaffeRead, TextErrorsHaveALine) {
  const std::string message = complaint([] { return read_caffe("name: \"net\"\nlayer { name }"); });
  EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  const std::string deep(100, '{');
  EXPECT_NE(complaint([&] { return read_caffe("layer " + deep); }).find("deep"), std::string::npos);
}

TEST(CaffeRead, CutWeightsAreRefused) {
  const std::string whole = caffemodel(conv_blobs());
  EXPECT_NE(complaint([&] {
              return caffe::read_weights(bytes_of(whole.substr(0, whole.size() - 3)));
            }).find("cut short"),
            std::string::npos);
}

}  // namespace
}  // namespace quench::testing
