// SPDX-License-Identifier: Apache-2.0
// Where each kind of layer keeps its output channels.
#include "passes/layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  if (!kind || node.inputs.size() < 2 || node.inputs[0] == kNoValue || node.outputs.size() != 1 ||
      node.outputs[0] == kNoValue) {
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

WeightMap::WeightMap(const Node& node, const Layer& layer, const Tensor& weight)
    : rows_are_outputs_(layer.kind == Layer::Kind::Conv ||
                        (layer.kind == Layer::Kind::Gemm && node.get_int("transB", 0) != 0)),
      rows_(as_size(weight.shape()[0])),
      columns_(as_size(weight.shape()[1])),
      inner_(as_size(weight.size()) / (rows_ * columns_)),
      rows_a_group_(rows_) {
  const bool grouped = layer.kind == Layer::Kind::Conv || layer.kind == Layer::Kind::ConvTranspose;
  if (grouped) rows_a_group_ /= as_size(node.get_int("group", 1));
}

std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Node& node, const Layer& layer,
                                    const std::vector<double>& scale) {
  const Tensor& weight = *rewriter.constant(layer.weight);
  std::vector<double> numbers = to_doubles(weight);
  WeightMap(node, layer, weight).for_each([&](std::size_t i, WeightMap::Channels channels) {
    numbers[i] *= scale[channels.out];
  });
  return rounded(numbers, weight.shape(), weight.dtype());
}

std::optional<Tensor> rounded(const std::vector<double>& numbers, Shape shape, DType dtype) {
  // The least that rounds to infinity in float16; the greatest float serves for the others.
  const double limit =
      dtype == DType::Float16 ? 65520.0 : double{std::numeric_limits<float>::max()};
  if (!std::ranges::all_of(numbers, [&](double each) { return std::abs(each) < limit; })) {
    return std::nullopt;
  }
  return convert(Tensor::of<double>(std::move(shape), numbers), dtype);
}

}  // namespace quench::passes
