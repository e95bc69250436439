// SPDX-License-Identifier: Apache-2.0
// Caffe's layers with weights: convolutions and products of matrices.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"

namespace quench::caffe {
namespace {

struct Window {
  Ints kernel, strides, pads, dilations;
  std::int64_t groups = 1, outputs = 0;
};

/// One number for both dimensions, one for each, or the two that have names.
template <typename List>
Ints pair_of(const List& list, bool named, std::int64_t h, std::int64_t w, std::int64_t otherwise) {
  if (named) return {h, w};
  if (list.size() == 0) return {otherwise, otherwise};
  if (list.size() == 1) return {list[0], list[0]};
  if (list.size() == 2) return {list[0], list[1]};
  fail(ErrorKind::Unsupported, "it has {} spatial dimensions; two are read", list.size());
}

Window window_of(const Layer& layer) {
  const ConvolutionParameter& given = layer.parameter().convolution_param();
  if (given.axis() != 1) fail(ErrorKind::Unsupported, "its channels are not dimension 1");
  layer.expect_image();
  Window window{.kernel = pair_of(given.kernel_size(), given.has_kernel_h() || given.has_kernel_w(),
                                  given.kernel_h(), given.kernel_w(), 0),
                .strides = pair_of(given.stride(), given.has_stride_h() || given.has_stride_w(),
                                   given.has_stride_h() ? given.stride_h() : 1,
                                   given.has_stride_w() ? given.stride_w() : 1, 1),
                .pads = pair_of(given.pad(), given.has_pad_h() || given.has_pad_w(), given.pad_h(),
                                given.pad_w(), 0),
                .dilations = pair_of(given.dilation(), false, 1, 1, 1),
                .groups = given.group(),
                .outputs = given.num_output()};
  constexpr std::int64_t kMost = 1 << 16;
  for (std::size_t i = 0; i < 2; ++i) {
    const bool sound = window.kernel[i] > 0 && window.kernel[i] < kMost && window.strides[i] > 0 &&
                       window.strides[i] < kMost && window.pads[i] < kMost &&
                       window.dilations[i] > 0 && window.dilations[i] < kMost;
    if (!sound) fail(ErrorKind::BadModel, "its kernel, stride, pad or dilation makes no sense");
  }
  const std::int64_t in = layer.dim(1);
  if (window.groups <= 0 || in % window.groups != 0 || window.outputs % window.groups != 0) {
    fail(ErrorKind::BadModel, "{} channels and {} outputs cannot be split into {} groups", in,
         window.outputs, window.groups);
  }
  return window;
}

NodeAttributes attributes_of(const Window& window) {
  return {{"kernel_shape", window.kernel},
          {"strides", window.strides},
          {"pads", Ints{window.pads[0], window.pads[1], window.pads[0], window.pads[1]}},
          {"dilations", window.dilations},
          {"group", window.groups}};
}

ValueId bias_of(Layer& layer, bool given, std::int64_t outputs) {
  if (!given) return kNoValue;
  return layer.make().graph().add_constant(layer.parameter().name() + ".bias",
                                           layer.blob(1, {outputs}));
}

ValueId weight_of(Layer& layer, const Shape& shape) {
  return layer.make().graph().add_constant(layer.parameter().name() + ".weight",
                                           layer.blob(0, shape));
}

void convolve(Layer& layer, const Window& window) {
  const std::int64_t in = layer.dim(1) / window.groups;
  const ValueId weight = weight_of(layer, {window.outputs, in, window.kernel[0], window.kernel[1]});
  const bool bias = layer.parameter().convolution_param().bias_term();
  const ValueId y = layer.make().node(
      "Conv", {layer.in(), weight, bias_of(layer, bias, window.outputs)}, attributes_of(window));
  Shape shape{layer.dim(0), window.outputs, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    const std::int64_t room = layer.dim(i + 2) + 2 * window.pads[i] - reach;
    if (room < 0) fail(ErrorKind::BadModel, "its kernel is larger than its bottom");
    shape[i + 2] = room / window.strides[i] + 1;
  }
  layer.set(y, shape);
}

void read_convolution(Layer& layer) { convolve(layer, window_of(layer)); }

/// A type of its own in some forks: as many groups as channels.
void read_depthwise(Layer& layer) {
  Window window = window_of(layer);
  window.groups = layer.dim(1);
  if (window.outputs % window.groups != 0) {
    fail(ErrorKind::BadModel, "{} outputs do not fit {} channels", window.outputs, window.groups);
  }
  convolve(layer, window);
}

void read_deconvolution(Layer& layer) {
  const Window window = window_of(layer);
  const ValueId weight = weight_of(
      layer, {layer.dim(1), window.outputs / window.groups, window.kernel[0], window.kernel[1]});
  const bool bias = layer.parameter().convolution_param().bias_term();
  const ValueId y =
      layer.make().node("ConvTranspose", {layer.in(), weight, bias_of(layer, bias, window.outputs)},
                        attributes_of(window));
  Shape shape{layer.dim(0), window.outputs, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = window.dilations[i] * (window.kernel[i] - 1) + 1;
    shape[i + 2] = window.strides[i] * (layer.dim(i + 2) - 1) + reach - 2 * window.pads[i];
  }
  layer.set(y, shape);
}

void read_inner_product(Layer& layer) {
  const InnerProductParameter& given = layer.parameter().inner_product_param();
  const std::int64_t outputs = given.num_output();
  const auto axis = static_cast<std::size_t>(layer.axis(given.axis()));
  const Shape& in = layer.shape();
  const std::int64_t inputs =
      count_of(Shape(in.begin() + static_cast<std::ptrdiff_t>(axis), in.end()));
  const bool straight = given.transpose();
  const ValueId weight =
      weight_of(layer, straight ? Shape{inputs, outputs} : Shape{outputs, inputs});
  ValueId x = layer.in();
  if (axis != 1 || in.size() != 2) {
    x = layer.make().node("Flatten", {x}, {{"axis", static_cast<std::int64_t>(axis)}});
  }
  const ValueId bias = bias_of(layer, given.bias_term(), outputs);
  const ValueId y =
      layer.make().node("Gemm", {x, weight, bias}, {{"transB", std::int64_t{straight ? 0 : 1}}});
  Shape shape(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.push_back(outputs);
  if (shape.size() == 2) return layer.set(y, shape);
  layer.set(layer.make().reshape(y, shape), shape);
}

constexpr auto kRows = std::to_array<LayerRow>({
    {"Convolution", read_convolution},
    {"ConvolutionDepthwise", read_depthwise},
    {"DepthwiseConvolution", read_depthwise},
    {"Deconvolution", read_deconvolution},
    {"InnerProduct", read_inner_product},
});

}  // namespace

std::span<const LayerRow> product_rows() { return kRows; }

}  // namespace quench::caffe
