// SPDX-License-Identifier: Apache-2.0
// Where each kind of layer keeps its output channels.
#include "passes/layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quench::passes {
namespace {

std::size_t as_size(std::int64_t number) { return static_cast<std::size_t>(number); }

std::optional<std::int64_t> rank_of(const Rewriter& rewriter, const Node& node, const Layer& layer,
                                    const Tensor& weight) {
  if (layer.takes_bias) return weight.rank();
  // A product of stacks of matrices.
  const auto& shape = rewriter.graph()[node.outputs[0]].type.shape;
  if (!shape) return std::nullopt;
  return static_cast<std::int64_t>(shape->size());
}

/// Reads the bias into `layer.shift`; false when it is no constant or has another shape.
bool read_bias(const Rewriter& rewriter, const Node& node, Layer& layer) {
  layer.shift.assign(as_size(layer.channels.count), 0.0);
  const int input = ops::facts(node).bias;
  if (layer.takes_bias) layer.bias = node.input(static_cast<std::size_t>(input));
  if (layer.bias == kNoValue) return true;
  const Tensor* bias = rewriter.constant(layer.bias);
  if (bias == nullptr || !is_real(bias->dtype())) return false;
  if (layer.kind != ops::WeightKind::Matrix) {
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
  if (!ops::is_layer(node) || node.inputs.size() < 2 || node.inputs[0] == kNoValue ||
      node.outputs.size() != 1 || node.outputs[0] == kNoValue) {
    return std::nullopt;
  }
  const Tensor* weight = rewriter.constant(node.inputs[1]);
  if (weight == nullptr || !is_real(weight->dtype())) return std::nullopt;
  const auto layout = ops::weight_layout(node, 1, weight->shape());
  if (!layout || (layout->sum_axis >= 0 && weight->rank() != 2)) return std::nullopt;
  Layer layer{.kind = ops::facts(node).weight,
              .layout = *layout,
              .takes_bias = ops::facts(node).bias >= 0,
              .weight = node.inputs[1]};
  layer.channels.count = layout->channels;
  layer.channels.last = layer.kind == ops::WeightKind::Matrix;
  layer.channels.rank = rank_of(rewriter, node, layer, *weight);
  if (layer.channels.count < 1 || weight->size() < 1) return std::nullopt;
  return read_bias(rewriter, node, layer) ? std::optional(layer) : std::nullopt;
}

WeightMap::WeightMap(const Layer& layer, const Tensor& weight)
    : rows_are_outputs_(layer.layout.channel_axis == 0 &&
                        layer.kind != ops::WeightKind::TransposedConvolution),
      rows_(as_size(weight.shape()[0])),
      columns_(as_size(weight.shape()[1])),
      inner_(as_size(weight.size()) / (rows_ * columns_)),
      rows_a_group_(rows_ / as_size(layer.layout.groups)) {}

std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Layer& layer,
                                    const std::vector<double>& scale) {
  const Tensor& weight = *rewriter.constant(layer.weight);
  std::vector<double> numbers = to_doubles(weight);
  WeightMap(layer, weight).for_each([&](std::size_t i, WeightMap::Channels channels) {
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
