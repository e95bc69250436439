// SPDX-License-Identifier: Apache-2.0
// The inputs of layers as rows of a matrix: samples of a matrix product, windows of a convolution.
#include <algorithm>

#include "base/format.h"
#include "ops/facts.h"
#include "tune/gptq.h"

namespace quench::tune {
namespace {

/// Sums over more inputs take minutes and gigabytes.
constexpr std::int64_t kMaxColumns = 4096;
/// Rows a call adds at most; neighbouring windows are much alike.
constexpr std::int64_t kMaxRows = 1024;
/// Matrices of all groups together hold no more numbers than this.
constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 25;

struct Window {
  std::vector<std::int64_t> kernel, stride, dilation, begin;
  std::vector<std::int64_t> outputs;  ///< positions along each dimension
};

std::vector<std::int64_t> or_ones(std::vector<std::int64_t> values, std::size_t count) {
  if (values.size() != count) values.assign(count, 1);
  return values;
}

Window window_of(const Node& node, const Shape& weight, const Shape& input) {
  const std::size_t dims = weight.size() - 2;
  Window window;
  window.kernel.assign(weight.begin() + 2, weight.end());
  window.stride = or_ones(node.get_ints("strides"), dims);
  window.dilation = or_ones(node.get_ints("dilations"), dims);
  std::vector<std::int64_t> pads = node.get_ints("pads");
  pads.resize(dims * 2, 0);
  const std::string automatic = node.get_string("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t size = input[i + 2];
    const std::int64_t span = (window.kernel[i] - 1) * window.dilation[i] + 1;
    const std::int64_t padded = size + pads[i] + pads[i + dims];
    const std::int64_t outputs = same ? (size + window.stride[i] - 1) / window.stride[i]
                                      : (padded - span) / window.stride[i] + 1;
    const std::int64_t pad =
        std::max<std::int64_t>(0, (outputs - 1) * window.stride[i] + span - size);
    window.outputs.push_back(outputs);
    window.begin.push_back(!same ? pads[i] : automatic == "SAME_UPPER" ? pad / 2 : (pad + 1) / 2);
  }
  return window;
}

/// One window of an image with two spatial dimensions, all channels of a group.
struct Reader {
  const float* image;
  std::int64_t height, width;
  const Window& window;

  void read(std::int64_t first, std::int64_t count, std::int64_t position, float* dst) const {
    const std::int64_t top = position / window.outputs[1] * window.stride[0] - window.begin[0];
    const std::int64_t left = position % window.outputs[1] * window.stride[1] - window.begin[1];
    for (std::int64_t c = first; c < first + count; ++c) {
      for (std::int64_t i = 0; i < window.kernel[0]; ++i) {
        for (std::int64_t j = 0; j < window.kernel[1]; ++j) {
          const std::int64_t row = top + i * window.dilation[0];
          const std::int64_t column = left + j * window.dilation[1];
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          *dst++ = inside ? image[(c * height + row) * width + column] : 0.0F;
        }
      }
    }
  }
};

bool is_conv(const Node& node) { return ops::facts(node).weight == ops::WeightKind::Convolution; }

LayerMatrix conv_matrix(const Node& node, const Shape& shape, std::string& reason) {
  const auto layout = ops::weight_layout(node, 1, shape);
  if (shape.size() != 4) {
    reason = "GPTQ knows convolutions of images only";
    return {};
  }
  if (!layout) {
    reason = "its groups do not fit its channels";
    return {};
  }
  return {.groups = layout->groups,
          .rows = layout->channels / layout->groups,
          .columns = shape[1] * shape[2] * shape[3]};
}

bool is_product(const Node& node, const Shape& shape) {
  return ops::facts(node).weight == ops::WeightKind::Matrix && shape.size() == 2 &&
         node.get_int("transA", 0) == 0;
}

}  // namespace

GptqLayer gptq_layer(const Graph& graph, const plan::WeightSite& site) {
  const Node& node = site.node_in(graph);
  const Shape& shape = site.weight_in(graph).shape();
  GptqLayer layer{.site = site, .input = {}, .matrix = {.groups = 0}, .reason = {}};
  if (site.input != 1 || node.input(0) == kNoValue || graph.constant(node.input(0)) != nullptr) {
    layer.reason = "it multiplies no activation from the right";
  } else if (is_conv(node)) {
    layer.matrix = conv_matrix(node, shape, layer.reason);
  } else if (is_product(node, shape)) {
    const auto layout = ops::weight_layout(node, 1, shape);
    layer.matrix = {.groups = 1,
                    .rows = shape[static_cast<std::size_t>(layout->channel_axis)],
                    .columns = shape[static_cast<std::size_t>(layout->sum_axis)],
                    .transposed = layout->channel_axis == 1};
  } else {
    layer.reason = format("GPTQ does not know {}", node.op_type);
  }
  const LayerMatrix& matrix = layer.matrix;
  if (layer.reason.empty() && (matrix.columns > kMaxColumns ||
                               matrix.groups > kMaxNumbers / matrix.columns / matrix.columns)) {
    layer.reason = format("its sums over {} inputs are too long for GPTQ", matrix.columns);
  }
  if (!layer.reason.empty()) layer.matrix.groups = 0;
  layer.input = node.input(0) == kNoValue ? "" : graph[node.input(0)].name;
  return layer;
}

InputMoments::InputMoments(GptqLayer layer) : layer_(std::move(layer)) {
  sums_.assign(static_cast<std::size_t>(layer_.matrix.groups), Square(layer_.matrix.columns));
}

void InputMoments::add(const Graph& graph, const Tensor& input, int threads) {
  const Tensor floats = input.dtype() == DType::Float32 ? input : convert(input, DType::Float32);
  const Node& node = layer_.site.node_in(graph);
  if (is_conv(node)) return add_windows(graph, floats, threads);
  const std::int64_t columns = layer_.matrix.columns;
  const std::int64_t rows = std::min(floats.size() / columns, kMaxRows);
  add_outer(sums_[0], floats.data<float>().first(static_cast<std::size_t>(rows * columns)),
            threads);
  samples_ += rows;
}

void InputMoments::add_windows(const Graph& graph, const Tensor& input, int threads) {
  if (input.rank() != 4) return;  // the layer is left as it is
  const Node& node = layer_.site.node_in(graph);
  const Shape& weight = layer_.site.weight_in(graph).shape();
  const Shape& shape = input.shape();
  const Window window = window_of(node, weight, shape);
  const std::int64_t positions = window.outputs[0] * window.outputs[1];
  const std::int64_t all = shape[0] * positions;
  if (positions <= 0 || shape[1] != weight[1] * layer_.matrix.groups) return;
  const std::int64_t step = std::max<std::int64_t>(1, all / kMaxRows);
  const auto columns = static_cast<std::size_t>(layer_.matrix.columns);
  const float* values = input.data<float>().data();
  std::vector<float> rows;
  for (std::int64_t group = 0; group < layer_.matrix.groups; ++group) {
    rows.clear();
    for (std::int64_t at = step / 2; at < all; at += step) {
      const Reader reader{values + at / positions * shape[1] * shape[2] * shape[3], shape[2],
                          shape[3], window};
      rows.resize(rows.size() + columns);
      reader.read(group * weight[1], weight[1], at % positions,
                  rows.data() + rows.size() - columns);
    }
    add_outer(sums_[static_cast<std::size_t>(group)], rows, threads);
  }
  samples_ += (all - step / 2 + step - 1) / step;
}

}  // namespace quench::tune
