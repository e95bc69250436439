// SPDX-License-Identifier: Apache-2.0
// Where each kind of layer keeps its output channels.
#include "passes/layer.h"

#include <algorithm>
#include <cmath>

namespace quench::passes {
namespace {

std::size_t as_size(std::int64_t number) { return static_cast<std::size_t>(number); }

/// Output channels, or 0 when the weight does not fit the kind.
std::int64_t num_channels(const Node& node, Layer::Kind kind, const Shape& weight) {
  const std::int64_t group = node.get_int("group", 1);
  switch (kind) {
    case Layer::Kind::Conv:
      return weight.size() < 3 || group < 1 || weight[0] % group != 0 ? 0 : weight[0];
    case Layer::Kind::ConvTranspose:
      if (weight.size() < 3 || group < 1 || weight[0] % group != 0) return 0;
      return num_elements(Shape{weight[1], group}).value_or(0);
    case Layer::Kind::Gemm:
      if (weight.size() != 2) return 0;
      return node.get_int("transB", 0) != 0 ? weight[0] : weight[1];
    case Layer::Kind::MatMul:
      return weight.size() == 2 ? weight[1] : 0;
  }
  return 0;
}

std::optional<Layer::Kind> kind_of(const Node& node) {
  if (!node.domain.empty()) return std::nullopt;
  if (node.op_type == "Conv") return Layer::Kind::Conv;
  if (node.op_type == "ConvTranspose") return Layer::Kind::ConvTranspose;
  if (node.op_type == "Gemm") return Layer::Kind::Gemm;
  if (node.op_type == "MatMul") return Layer::Kind::MatMul;
  return std::nullopt;
}

std::optional<std::int64_t> rank_of(const Rewriter& rewriter, const Node& node, Layer::Kind kind,
                                    const Tensor& weight) {
  if (kind != Layer::Kind::MatMul) return weight.rank();
  const auto& shape = rewriter.graph()[node.outputs[0]].type.shape;
  if (!shape) return std::nullopt;
  return static_cast<std::int64_t>(shape->size());
}

/// Reads the bias into `layer.shift`; false when it is no constant or has another shape.
bool read_bias(const Rewriter& rewriter, const Node& node, Layer& layer) {
  layer.shift.assign(as_size(layer.channels.count), 0.0);
  layer.bias = layer.kind == Layer::Kind::MatMul ? kNoValue : node.input(2);
  if (layer.bias == kNoValue) return true;
  const Tensor* bias = rewriter.constant(layer.bias);
  if (bias == nullptr || !is_real(bias->dtype())) return false;
  if (layer.kind != Layer::Kind::Gemm) {
    if (bias->shape() != Shape{layer.channels.count}) return false;
    layer.shift = to_doubles(*bias);
    return true;
  }
  const auto numbers = per_channel(*bias, layer.channels);
  if (!numbers) return false;
  const double beta = node.get_float("beta", 1.0F);
  std::ranges::transform(*numbers, layer.shift.begin(), [&](double each) { return beta * each; });
  return true;
}

}  // namespace

std::optional<Layer> layer_of(const Rewriter& rewriter, const Node& node) {
  const auto kind = kind_of(node);
  if (!kind || node.inputs.size() < 2 || node.inputs[0] == kNoValue || node.outputs.size() != 1) {
    return std::nullopt;
  }
  Layer layer{.kind = *kind, .weight = node.inputs[1]};
  const Tensor* weight = rewriter.constant(layer.weight);
  if (weight == nullptr || !is_real(weight->dtype())) return std::nullopt;
  layer.channels.count = num_channels(node, *kind, weight->shape());
  layer.channels.last = *kind == Layer::Kind::Gemm || *kind == Layer::Kind::MatMul;
  layer.channels.rank = rank_of(rewriter, node, *kind, *weight);
  if (layer.channels.count < 1 || weight->size() < 1) return std::nullopt;
  return read_bias(rewriter, node, layer) ? std::optional(layer) : std::nullopt;
}

std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Node& node, const Layer& layer,
                                    const std::vector<double>& scale) {
  const Tensor& weight = *rewriter.constant(layer.weight);
  const Shape& shape = weight.shape();
  const auto columns = as_size(shape[1]);
  const std::size_t inner = as_size(weight.size() / (shape[0] * shape[1]));
  const std::size_t rows_a_group =
      as_size(shape[0] / std::max<std::int64_t>(node.get_int("group", 1), 1));
  std::vector<double> numbers = to_doubles(weight);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t row = i / inner / columns;
    const std::size_t column = i / inner % columns;
    std::size_t channel = row;  // Conv, and Gemm with a transposed weight
    if (layer.kind == Layer::Kind::MatMul) channel = column;
    if (layer.kind == Layer::Kind::Gemm && node.get_int("transB", 0) == 0) channel = column;
    if (layer.kind == Layer::Kind::ConvTranspose) channel = row / rows_a_group * columns + column;
    numbers[i] *= scale[channel];
  }
  return rounded(numbers, shape, weight.dtype());
}

std::optional<Tensor> rounded(const std::vector<double>& numbers, Shape shape, DType dtype) {
  Tensor result = convert(Tensor::of<double>(std::move(shape), numbers), dtype);
  const std::vector<double> back = to_doubles(result);
  for (std::size_t i = 0; i < back.size(); ++i) {
    if (!std::isfinite(back[i])) return std::nullopt;
  }
  return result;
}

}  // namespace quench::passes
