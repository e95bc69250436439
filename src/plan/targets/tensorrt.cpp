// SPDX-License-Identifier: Apache-2.0
// NVIDIA TensorRT with explicit quantisation: symmetric int8, float biases, inputs of layers only.
#include "plan/target.h"

namespace quench::plan {
namespace {

constexpr std::int64_t kMinChannels = 16;
constexpr std::int64_t kChannelBlock = 8;

/// A convolution with few channels gains only as a network's first layer of a whole block.
std::string refuse_conv(const Node& node, const Tensor& weight) {
  const auto layout = ops::weight_layout(node, 1, weight.shape());
  if (!layout) return "its weight has fewer than three dimensions";
  const std::int64_t out = layout->channels;
  const std::int64_t in = weight.shape()[1] * layout->groups;
  if (layout->groups == 1) {
    const bool square = weight.rank() == 4 && weight.shape()[2] == weight.shape()[3];
    if (out >= kMinChannels && in >= kMinChannels) return "";
    if (in <= 4 && out >= kMinChannels) return "";  // a first layer
    if (in % kChannelBlock == 0 && square && (out >= kMinChannels || in >= kMinChannels)) return "";
    return "integer convolutions of fewer than 16 channels are slower than float ones";
  }
  if (out % kChannelBlock != 0) return "a grouped convolution needs a multiple of 8 channels";
  if (weight.shape().back() < 3) return "a grouped convolution needs a kernel of at least 3";
  return "";
}

std::string refuse(const Graph& graph, const Node& node) {
  const Tensor* weight = graph.constant(node.input(1));
  const ops::WeightKind kind = ops::facts(node).weight;
  if (kind == ops::WeightKind::Convolution && weight != nullptr) return refuse_conv(node, *weight);
  if (kind != ops::WeightKind::Matrix) return "";
  const auto& shape = graph[node.outputs[0]].type.shape;
  if (!shape || shape->size() < 2) return "";
  const bool gemv = (*shape)[shape->size() - 1].value == 1;
  return gemv ? "a product with a vector is bound by memory: float is as fast" : "";
}

}  // namespace

TargetInfo tensorrt() {
  TargetInfo target{.name = "tensorrt",
                    .summary = "NVIDIA TensorRT (NVGPU): symmetric int8, float biases",
                    .activation_signed = true,
                    .activation_symmetric = true,
                    .quantize_bias = false,
                    .quantize_outputs = false,
                    .residual_in_float = true,
                    .shared_concat = true};
  target.ops = {
      integer_to_float(Form::Convolution),
      integer_to_float(Form::TransposedConvolution),
      integer_to_float(Form::Product),
      integer_to_float("Add"),
      integer_to_float(Form::Average),
      integer_to_float("Concat"),
      moves(Form::View),
      moves("Slice"),
      moves("Split"),
      moves("MaxPool"),
      in_float(Form::Clamp, "fused with the layer before it"),
      in_float("Mul", "runs in half precision"),
      in_float("Sigmoid", "runs in half precision"),
      in_float("Softmax", "runs in half precision"),
      in_float("LayerNormalization", "runs in half precision"),
  };
  target.otherwise = "TensorRT runs it in half precision";
  target.refuse = refuse;
  return target;
}

}  // namespace quench::plan
