// SPDX-License-Identifier: Apache-2.0
// Layers and pools as TFLite's.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

/// Height and width.
struct Window {
  Ints kernel, strides, dilations, pads;
};

Ints pair_or(const Node& node, std::string_view attribute, std::int64_t otherwise) {
  Ints given = node.get_ints(attribute);
  if (given.empty()) given = {otherwise, otherwise};
  return given;
}

/// TFLite's SAME along one dimension: what it pads in front, and in all.
std::pair<std::int64_t, std::int64_t> same_pads(std::int64_t in, std::int64_t kernel,
                                                std::int64_t stride, std::int64_t dilation) {
  const std::int64_t out = (in + stride - 1) / stride;
  const std::int64_t total =
      std::max<std::int64_t>((out - 1) * stride + (kernel - 1) * dilation + 1 - in, 0);
  return {total / 2, total};
}

Window window_of(const Writer& writer, const Node& node, const Ints& kernel) {
  if (kernel.size() != 2) fail(ErrorKind::Unsupported, "only two spatial dimensions are written");
  Window window{.kernel = kernel,
                .strides = pair_or(node, "strides", 1),
                .dilations = pair_or(node, "dilations", 1),
                .pads = node.get_ints("pads")};
  if (window.pads.empty()) window.pads = {0, 0, 0, 0};
  const std::string automatic = node.get_string("auto_pad", "NOTSET");
  if (automatic == "SAME_LOWER" || node.get_int("ceil_mode", 0) != 0) {
    fail(ErrorKind::Unsupported, "sizes that are rounded up, or padded in front, are not written");
  }
  if (automatic == "SAME_UPPER") {
    const Shape in = writer.shape(node.inputs[0]);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto [front, total] =
          same_pads(in[i + 2], kernel[i], window.strides[i], window.dilations[i]);
      window.pads[i] = front;
      window.pads[i + 2] = total - front;
    }
  }
  return window;
}

enum class Padding { Same, Valid, Own };

Padding padding_of(const Window& window, const Shape& in) {
  if (std::ranges::all_of(window.pads, [](auto pad) { return pad == 0; })) return Padding::Valid;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [front, total] =
        same_pads(in[i + 2], window.kernel[i], window.strides[i], window.dilations[i]);
    if (window.pads[i] != front || window.pads[i + 2] != total - front) return Padding::Own;
  }
  return Padding::Same;
}

/// The input, channels last, behind a PAD where TFLite's own padding is another.
int padded(Writer& writer, ValueId from, const Window& window, Padding& padding) {
  const int x = writer.tensor(from, Layout::Last);
  if (padding != Padding::Own) return x;
  padding = Padding::Valid;
  TensorItem made = writer.described(from, Layout::Last);
  made.shape[1] += window.pads[0] + window.pads[2];
  made.shape[2] += window.pads[1] + window.pads[3];
  const Tensor pads = Tensor::of<std::int32_t>(
      {4, 2},
      {0, 0, static_cast<std::int32_t>(window.pads[0]), static_cast<std::int32_t>(window.pads[2]),
       static_cast<std::int32_t>(window.pads[1]), static_cast<std::int32_t>(window.pads[3]), 0, 0});
  const int amounts = writer.add_constant(made.name + "/pads", pads);
  return writer.add_between("PAD", {x, amounts}, std::move(made), {}, 2);
}

Options window_options(const Window& window, Padding padding, std::int64_t fused) {
  return {{"padding", std::int64_t{padding == Padding::Same ? 0 : 1}},
          {"stride_h", window.strides[0]},
          {"stride_w", window.strides[1]},
          {"fused", fused}};
}

/// The weight as floats: a constant, or what a DequantizeLinear makes of one.
Tensor float_constant(const Writer& writer, ValueId id) {
  if (const Tensor* plain = writer.constant(id)) return convert(*plain, DType::Float32);
  const ValueId from = writer.source(id, true);
  const Tensor* integers = writer.constant(from);
  const Quantization& scales = writer.quantization(from);
  if (integers == nullptr || !scales.given()) {
    fail(ErrorKind::Unsupported, "its weight or bias is computed");
  }
  const std::int64_t shift = integers->dtype() == DType::UInt8 ? 128 : 0;
  Tensor result = convert(*integers, DType::Float32);
  std::int64_t behind = 1;
  for (std::int64_t i = scales.axis + 1; i < result.rank(); ++i) {
    behind *= result.shape()[static_cast<std::size_t>(i)];
  }
  const auto numbers = result.mutable_data<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t channel =
        scales.scale.size() == 1 ? 0 : i / static_cast<std::size_t>(behind) % scales.scale.size();
    numbers[i] = (numbers[i] - static_cast<float>(scales.zero_point[channel] + shift)) *
                 scales.scale[channel];
  }
  return result;
}

/// Signed weights without zero points: all that TFLite's integer kernels take.
bool has_integer_weight(const Writer& writer, ValueId id) {
  const Quantization& scales = writer.quantization(writer.source(id, true));
  return std::ranges::all_of(scales.zero_point, [](auto zero) { return zero == 0; });
}

int weight_of(Writer& writer, ValueId id, bool integers, const Ints& perm) {
  const ValueId from = writer.source(id, true);
  const std::string name = writer.graph()[from].name;
  const Tensor* stored = writer.constant(from);
  // Integer weights of a layer in float are those of a dynamic-range model.
  const bool bytes = stored != nullptr && from != id && has_integer_weight(writer, id) &&
                     (stored->dtype() == DType::Int8 || stored->dtype() == DType::UInt8);
  if (!integers && !bytes) {
    return writer.add_constant(name, permuted(float_constant(writer, id), perm));
  }
  if (stored == nullptr) fail(ErrorKind::Unsupported, "its weight is computed");
  Quantization scales = writer.quantization(from);
  scales.axis = std::ranges::find(perm, scales.axis) - perm.begin();
  if (scales.scale.size() == 1) scales.axis = 0;
  return writer.add_constant(name, permuted(*stored, perm), scales);
}

/// 32-bit integers at the scale of the sums, or floats; zeros where there is none.
int bias_of(Writer& writer, const Node& node, bool integers, std::int64_t channels) {
  const ValueId id = node.input(2);
  Tensor floats = Tensor::zeros(DType::Float32, {channels});
  if (id != kNoValue) {
    const Tensor given = float_constant(writer, id);
    const auto to = floats.mutable_data<float>();
    if (given.size() != 1 && given.size() != channels) {
      fail(ErrorKind::Unsupported, "its bias is not one number a channel");
    }
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = given.data<float>()[given.size() == 1 ? 0 : i];
    }
  }
  const std::string name = node.name + "/bias";
  if (!integers) {
    return writer.add_constant(id == kNoValue ? name : writer.graph()[id].name, floats);
  }
  const Quantization& x = writer.quantization(writer.source(node.inputs[0], true));
  const Quantization& w = writer.quantization(writer.source(node.inputs[1], true));
  Quantization scales;
  Tensor sums = Tensor::zeros(DType::Int32, {channels});
  const auto to = sums.mutable_data<std::int32_t>();
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const float scale = x.scale[0] * w.scale[w.scale.size() == 1 ? 0 : i];
    if (i < w.scale.size()) scales.scale.push_back(scale);
    const double steps = std::nearbyint(double{floats.data<float>()[i]} / scale);
    // A scale of zero has none to count in.
    to[i] = static_cast<std::int32_t>(std::isnan(steps) ? 0 : std::clamp(steps, -kMost, kMost));
  }
  scales.zero_point.assign(scales.scale.size(), 0);
  return writer.add_constant(name, sums, scales);
}

/// Two constants for each channel, channels last: y = x * a + b.
void write_batch_normalization(Writer& writer, const Node& node) {
  const ValueId x = node.inputs[0];
  const Layout layout = writer.rank(x) < 3 ? Layout::First : Layout::Last;
  std::array<std::vector<float>, 4> given;
  for (std::size_t i = 0; i < given.size(); ++i) {
    given[i] = to_float(float_constant(writer, node.input(i + 1)));
    if (given[i].size() != given[0].size())
      fail(ErrorKind::BadModel, "its constants differ in size");
  }
  const float least = node.get_float("epsilon", 1e-5F);
  std::vector<float> a, b;
  for (std::size_t i = 0; i < given[0].size(); ++i) {
    a.push_back(given[0][i] / std::sqrt(given[3][i] + least));
    b.push_back(given[1][i] - given[2][i] * a[i]);
  }
  const Shape shape{std::ssize(a)};
  const int scale = writer.add_constant(node.name + "/scale",
                                        Tensor::of<float>(shape, std::span<const float>(a)));
  const int shift = writer.add_constant(node.name + "/shift",
                                        Tensor::of<float>(shape, std::span<const float>(b)));
  const Result result = writer.result_of(node, {x, node.input(1)}, true);
  const int scaled = writer.add_between("MUL", {writer.tensor(x, layout), scale},
                                        writer.described(node.outputs[0], layout));
  writer.add("ADD", {scaled, shift}, {.value = result.value, .fused = result.fused}, layout,
             {{"fused", result.fused}});
}

std::vector<ValueId> layer_inputs(const Node& node) { return {node.inputs[0], node.inputs[1]}; }

void write_conv(Writer& writer, const Node& node) {
  const Shape weight = writer.shape(writer.source(node.inputs[1], true));
  const Shape in = writer.shape(node.inputs[0]);
  if (weight.size() != 4) fail(ErrorKind::Unsupported, "only convolutions in 2-D are written");
  const Window window = window_of(writer, node, {weight[2], weight[3]});
  Result result = writer.result_of(node, layer_inputs(node), true);
  const bool depthwise = node.get_int("group", 1) == in[1] && weight[1] == 1 && in[1] > 1;
  Padding padding = padding_of(window, in);
  const int x = padded(writer, writer.source(node.inputs[0], result.integers), window, padding);
  Options options = window_options(window, padding, result.fused);
  options.push_back({"dilation_h", window.dilations[0]});
  options.push_back({"dilation_w", window.dilations[1]});
  if (depthwise) options.push_back({"multiplier", weight[0] / in[1]});
  const int w = weight_of(writer, node.inputs[1], result.integers,
                          depthwise ? Ints{1, 2, 3, 0} : Ints{0, 2, 3, 1});
  const int bias = bias_of(writer, node, result.integers, weight[0]);
  constexpr int kIntegers = 3;
  writer.add(depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", {x, w, bias}, result, Layout::Last,
             options, nullptr, result.integers ? kIntegers : 1);
}

/// TFLite pads as the convolution that goes the other way would, SAME or not at all.
Padding transposed_padding(const Node& node, const Window& window, const Shape& in,
                           const Shape& out) {
  if (node.get_int("group", 1) != 1 || window.dilations != Ints{1, 1}) {
    fail(ErrorKind::Unsupported, "groups and dilations of it are not written");
  }
  bool same = true, none = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [front, total] = same_pads(out[i + 2], window.kernel[i], window.strides[i], 1);
    const bool fits = in[i + 2] == (out[i + 2] + window.strides[i] - 1) / window.strides[i];
    same = same && fits && window.pads[i] == front;
    none = none && window.pads[i] == 0;
  }
  if (!same && !none) fail(ErrorKind::Unsupported, "its padding is not TFLite's");
  return same ? Padding::Same : Padding::Valid;
}

void write_conv_transpose(Writer& writer, const Node& node) {
  const Shape weight = writer.shape(writer.source(node.inputs[1], true));
  if (weight.size() != 4) fail(ErrorKind::Unsupported, "only convolutions in 2-D are written");
  const Window window = window_of(writer, node, {weight[2], weight[3]});
  const Shape in = writer.shape(node.inputs[0]);
  const Shape out = writer.shape(node.outputs[0]);
  const Padding padding = transposed_padding(node, window, in, out);
  Result result = writer.result_of(node, layer_inputs(node), true);
  // The shape of the result is an input, so that the batch must be known.
  const int shape = writer.add_ints(node.name + "/shape",
                                    {std::max<std::int64_t>(out[0], 1), out[2], out[3], out[1]});
  const int w = weight_of(writer, node.inputs[1], result.integers, {1, 2, 3, 0});
  const int x = writer.tensor(writer.source(node.inputs[0], result.integers), Layout::Last);
  const int bias = bias_of(writer, node, result.integers, weight[1]);
  constexpr int kFused = 4;
  writer.add("TRANSPOSE_CONV", {shape, w, x, bias}, result, Layout::Last,
             window_options(window, padding, result.fused), nullptr,
             result.fused != 0 ? kFused : 3);
}

void write_gemm(Writer& writer, const Node& node) {
  if (node.get_int("transA", 0) != 0 || node.get_float("alpha", 1) != 1 ||
      node.get_float("beta", 1) != 1) {
    fail(ErrorKind::Unsupported, "products with transA, alpha or beta are not written");
  }
  const bool turned = node.get_int("transB", 0) != 0;
  const Shape weight = writer.shape(writer.source(node.inputs[1], true));
  const Result result = writer.result_of(node, layer_inputs(node), true);
  const int x = writer.tensor(writer.source(node.inputs[0], result.integers), Layout::First);
  const int w =
      weight_of(writer, node.inputs[1], result.integers, turned ? Ints{0, 1} : Ints{1, 0});
  const int bias = bias_of(writer, node, result.integers, weight[turned ? 0 : 1]);
  constexpr int kIntegers = 4;
  writer.add("FULLY_CONNECTED", {x, w, bias}, result, Layout::First, {{"fused", result.fused}},
             nullptr, result.integers ? kIntegers : 1);
}

void write_matmul(Writer& writer, const Node& node) {
  const ValueId from = writer.source(node.inputs[1], true);
  const Tensor* weight = writer.constant(from);
  const Result result = writer.result_of(node, layer_inputs(node), true);
  const ValueId left = writer.source(node.inputs[0], result.integers);
  if (weight == nullptr || weight->rank() != 2) {
    const ValueId right = writer.source(node.inputs[1], result.integers);
    return writer.add("BATCH_MATMUL",
                      {writer.tensor(left, Layout::First), writer.tensor(right, Layout::First)},
                      {.value = result.value, .integers = result.integers}, Layout::First);
  }
  const int w = weight_of(writer, node.inputs[1], result.integers, {1, 0});
  const int bias = bias_of(writer, node, result.integers, weight->shape()[1]);
  const std::int64_t keep = writer.rank(left) > 2 ? 1 : 0;
  writer.add("FULLY_CONNECTED", {writer.tensor(left, Layout::First), w, bias}, result,
             Layout::First, {{"fused", result.fused}, {"keep_num_dims", keep}}, nullptr, 5);
}

void write_pool(Writer& writer, const Node& node) {
  const bool max = node.op_type == "MaxPool";
  if (max && node.outputs.size() > 1) fail(ErrorKind::Unsupported, "its indices are asked for");
  const Shape in = writer.shape(node.inputs[0]);
  const Window window = window_of(writer, node, node.get_ints("kernel_shape"));
  Padding padding = padding_of(window, in);
  const bool counts = !max && node.get_int("count_include_pad", 0) != 0;
  if ((padding == Padding::Own && !counts) || (padding == Padding::Same && counts)) {
    fail(ErrorKind::Unsupported, "its padding is not TFLite's");
  }
  Result result = writer.result_of(node, {node.inputs[0]}, true);
  const ValueId from = writer.source(node.inputs[0], result.integers);
  const int x = padded(writer, from, window, padding);
  Options options = window_options(window, padding, result.fused);
  options.push_back({"filter_h", window.kernel[0]});
  options.push_back({"filter_w", window.kernel[1]});
  writer.add(max ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", {x}, result, Layout::Last, options,
             &writer.quantization(from), result.integers ? 2 : 1);
}

void mean(Writer& writer, const Node& node, const Ints& axes, bool keep, Layout from, Layout to) {
  const Result result = writer.result_of(node, {node.inputs[0]}, false);
  const ValueId source = writer.source(node.inputs[0], result.integers);
  const int at = writer.add_ints(node.name + "/axes", axes);
  writer.add("MEAN", {writer.tensor(source, from), at}, result, to, {{"keep", std::int64_t{keep}}},
             nullptr, 2);
}

void write_global_average(Writer& writer, const Node& node) {
  if (writer.rank(node.inputs[0]) != 4) fail(ErrorKind::Unsupported, "it is written for images");
  mean(writer, node, {1, 2}, true, Layout::Last, Layout::Last);
}

void write_mean(Writer& writer, const Node& node) {
  Ints axes = node.get_ints("axes");
  if (const Tensor* given = writer.constant(node.input(1))) {
    const Tensor wide = convert(*given, DType::Int64);
    axes.assign(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
  }
  const std::int64_t rank = writer.rank(node.inputs[0]);
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  const bool keep = node.get_int("keepdims", 1) != 0;
  if (rank == 4 && axes == Ints{2, 3}) {
    return mean(writer, node, {1, 2}, keep, Layout::Last, Layout::Last);
  }
  mean(writer, node, axes, keep, Layout::First, Layout::First);
}

constexpr auto kRows = std::to_array<WriteRow>({
    {"Conv", write_conv},
    {"ConvTranspose", write_conv_transpose},
    {"Gemm", write_gemm},
    {"MatMul", write_matmul},
    {"BatchNormalization", write_batch_normalization},
    {"MaxPool", write_pool},
    {"AveragePool", write_pool},
    {"GlobalAveragePool", write_global_average},
    {"ReduceMean", write_mean},
});

}  // namespace

std::span<const WriteRow> layer_rows() { return kRows; }

}  // namespace quench::tflite::write
