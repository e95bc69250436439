// SPDX-License-Identifier: Apache-2.0
// Caffe's layers that scale, shift or normalise. What is constant for each channel becomes nodes
// that later passes fold into the convolution before them.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"

namespace quench::caffe {
namespace {

/// Caffe keeps sums of means and variances, and what to divide them by.
void read_batch_norm(Layer& layer) {
  const BatchNormParameter& given = layer.parameter().batch_norm_param();
  if (given.has_use_global_stats() && !given.use_global_stats()) {
    fail(ErrorKind::Unsupported,
         "it normalises by the batch at hand (use_global_stats: false), which is not read");
  }
  const std::int64_t channels = layer.dim(1);
  const Tensor means = layer.blob(0, {channels});
  const Tensor variances = layer.blob(1, {channels});
  const float by = layer.blob(2, {1}).data<float>()[0];
  const float factor = by == 0 ? 0 : 1 / by;
  const auto scaled = [&](const Tensor& tensor) {
    std::vector<float> result;
    for (const float each : tensor.data<float>()) result.push_back(each * factor);
    return layer.make().floats(result);
  };
  const auto all = [&](float value) {
    return layer.make().floats(std::vector<float>(static_cast<std::size_t>(channels), value));
  };
  layer.set(layer.make().node("BatchNormalization",
                              {layer.in(), all(1), all(0), scaled(means), scaled(variances)},
                              {{"epsilon", given.eps()}}),
            layer.shape());
}

struct Spread {
  std::int64_t axis, axes;
};

/// The shape of a blob that lies along `axes` dimensions from `axis` on, with ones behind.
Shape broadcast_shape(const Layer& layer, const Spread& along) {
  const std::int64_t axis = layer.axis(along.axis);
  const std::int64_t axes = along.axes == -1 ? layer.rank() - axis : along.axes;
  if (axes < 0 || axis + axes > layer.rank()) {
    fail(ErrorKind::BadModel, "it covers {} dimensions from {} on, of {}", axes, axis,
         layer.rank());
  }
  Shape shape;
  for (std::int64_t i = axis; i < layer.rank(); ++i) {
    const bool covered = i < axis + axes;
    shape.push_back(covered ? layer.dim(static_cast<std::size_t>(i)) : 1);
  }
  return shape;
}

/// A second bottom, with ones behind its dimensions.
ValueId second(Layer& layer, std::int64_t axis) {
  Shape shape = layer.shape(1);
  const auto behind = layer.rank() - layer.axis(axis) - std::ssize(shape);
  if (behind < 0) fail(ErrorKind::BadModel, "its second bottom has too many dimensions");
  if (behind == 0) return layer.in(1);
  shape.insert(shape.end(), static_cast<std::size_t>(behind), 1);
  return layer.make().reshape(layer.in(1), reshape_target(layer.shape(1), shape));
}

void read_scale(Layer& layer) {
  const ScaleParameter& given = layer.parameter().scale_param();
  const bool learned = layer.num_bottoms() == 1;
  const Spread along{given.axis(), learned ? given.num_axes() : layer.rank(1)};
  const Shape shape = broadcast_shape(layer, along);
  const ValueId scale =
      learned ? layer.make().constant(layer.blob(0, shape)) : second(layer, given.axis());
  ValueId y = layer.make().node("Mul", {layer.in(), scale});
  if (given.bias_term()) {
    const ValueId bias = layer.make().constant(layer.blob(learned ? 1 : 0, shape));
    y = layer.make().node("Add", {y, bias});
  }
  layer.set(y, layer.shape());
}

void read_bias(Layer& layer) {
  const BiasParameter& given = layer.parameter().bias_param();
  const bool learned = layer.num_bottoms() == 1;
  const ValueId bias = learned ? layer.make().constant(layer.blob(
                                     0, broadcast_shape(layer, {given.axis(), given.num_axes()})))
                               : second(layer, given.axis());
  layer.set(layer.make().node("Add", {layer.in(), bias}), layer.shape());
}

ValueId lrn_within(Layer& layer, const LRNParameter& given) {
  GraphMaker& make = layer.make();
  const std::int64_t size = given.local_size();
  const std::int64_t pad = (size - 1) / 2;
  const ValueId squares = make.node("Mul", {layer.in(), layer.in()});
  const ValueId mean = make.node("AveragePool", {squares},
                                 {{"kernel_shape", Ints{size, size}},
                                  {"strides", Ints{1, 1}},
                                  {"pads", Ints{pad, pad, pad, pad}},
                                  {"count_include_pad", std::int64_t{1}}});
  const ValueId sum =
      make.node("Add", {make.node("Mul", {mean, make.scalar(given.alpha())}), make.scalar(1)});
  return make.node("Mul", {layer.in(), make.node("Pow", {sum, make.scalar(-given.beta())})});
}

void read_lrn(Layer& layer) {
  layer.expect_image();
  const LRNParameter& given = layer.parameter().lrn_param();
  const std::int64_t size = given.local_size();
  if (size % 2 == 0) fail(ErrorKind::BadModel, "its size {} is not odd", size);
  if (given.norm_region() == LRNParameter::WITHIN_CHANNEL) {
    return layer.set(lrn_within(layer, given), layer.shape());
  }
  layer.set(
      layer.make().node(
          "LRN", {layer.in()},
          {{"size", size}, {"alpha", given.alpha()}, {"beta", given.beta()}, {"bias", given.k()}}),
      layer.shape());
}

void read_mvn(Layer& layer) {
  const MVNParameter& given = layer.parameter().mvn_param();
  GraphMaker& make = layer.make();
  Ints axes;
  for (std::int64_t i = given.across_channels() ? 1 : 2; i < layer.rank(); ++i) axes.push_back(i);
  if (axes.empty()) fail(ErrorKind::BadModel, "there is nothing to take the mean of");
  const ValueId mean = make.reduce("ReduceMean", layer.in(), axes, true);
  ValueId y = make.node("Sub", {layer.in(), mean});
  if (given.normalize_variance()) {
    const ValueId variance = make.reduce("ReduceMean", make.node("Mul", {y, y}), axes, true);
    const ValueId deviation =
        make.node("Add", {make.node("Sqrt", {variance}), make.scalar(given.eps())});
    y = make.node("Div", {y, deviation});
  }
  layer.set(y, layer.shape());
}

/// SSD's: to a length of one, then by learned scales.
void read_normalize(Layer& layer) {
  layer.expect_image();
  const NormalizeParameter& given = layer.parameter().norm_param();
  GraphMaker& make = layer.make();
  const ValueId squares = make.node("Mul", {layer.in(), layer.in()});
  const Ints axes = given.across_spatial() ? Ints{1, 2, 3} : Ints{1};
  const ValueId sum =
      make.node("Add", {make.reduce("ReduceSum", squares, axes, true), make.scalar(given.eps())});
  const ValueId unit = make.node("Div", {layer.in(), make.node("Sqrt", {sum})});
  const std::int64_t channels = given.channel_shared() ? 1 : layer.dim(1);
  const ValueId scale = make.constant(layer.blob(0, {1, channels, 1, 1}));
  layer.set(make.node("Mul", {unit, scale}), layer.shape());
}

void read_softmax(Layer& layer) {
  const std::int64_t axis = layer.axis(layer.parameter().softmax_param().axis());
  layer.set(layer.make().node("Softmax", {layer.in()}, {{"axis", axis}}), layer.shape());
}

constexpr auto kRows = std::to_array<LayerRow>({
    {"BatchNorm", read_batch_norm},
    {"Scale", read_scale},
    {"Bias", read_bias},
    {"LRN", read_lrn},
    {"MVN", read_mvn},
    {"Normalize", read_normalize},
    {"Softmax", read_softmax},
});

}  // namespace

std::span<const LayerRow> norm_rows() { return kRows; }

}  // namespace quench::caffe
