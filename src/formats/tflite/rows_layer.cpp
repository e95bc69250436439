// SPDX-License-Identifier: Apache-2.0
// TFLite's layers: convolutions and products of matrices.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/format.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/window.h"

namespace quench::tflite {
namespace {

/// An int32 bias has the scale of the sums, input times weight, whether the file says so or not.
ValueId bias_of(Op& op, std::size_t input, std::size_t weight) {
  if (!op.has(input)) return kNoValue;
  const TensorItem& bias = op.in_item(input);
  if (bias.dtype != DType::Int32) return op.in(input);
  TensorItem scaled = bias;
  if (!scaled.quantization.given()) {
    const Quantization& w = op.in_item(weight).quantization;
    const Quantization& x = op.in_item(0).quantization;
    if (x.scale.size() != 1 || !w.given()) {
      fail(ErrorKind::BadModel, "its bias is int32, but its input and weight are not quantised");
    }
    for (const float each : w.scale) scaled.quantization.scale.push_back(each * x.scale[0]);
    scaled.quantization.zero_point.assign(w.scale.size(), 0);
  }
  if (std::ranges::any_of(scaled.quantization.zero_point, [](auto each) { return each != 0; })) {
    fail(ErrorKind::BadModel, "its bias has a zero point that is not 0");
  }
  return op.translator().dequantize(op.in(input, Layout::Last, Form::Integers), scaled, 0);
}

const Shape& weight_shape(Op& op, std::size_t input, std::int64_t rank) {
  const Shape& shape = op.in_item(input).shape;
  if (std::ssize(shape) != rank || std::ranges::any_of(shape, [](auto dim) { return dim <= 0; })) {
    fail(ErrorKind::BadModel, "its weight '{}' has not {} dimensions that are known",
         op.in_item(input).name, rank);
  }
  return shape;
}

void convolve(Op& op, const Ints& perm, std::int64_t groups) {
  const Shape& weight = weight_shape(op, 1, 4);
  Window window{.kernel = {weight[1], weight[2]},
                .strides = strides_of(op),
                .dilations = {op.number("dilation_h"), op.number("dilation_w")}};
  NodeAttributes attributes;
  if (const Dilation* whole = op.translator().dilation_of(op.item().index)) {
    attributes = {{"kernel_shape", window.kernel},
                  {"strides", window.strides},
                  {"dilations", whole->block},
                  {"pads", Ints{whole->begin[0], whole->begin[1], whole->end[0], whole->end[1]}}};
  } else {
    attributes = window_attributes(op, window);
  }
  attributes.emplace_back("group", groups);
  const ValueId x = op.in(0, Layout::First);
  const ValueId w = op.translator().arranged_constant(op.item().inputs[1], perm);
  const ValueId bias = bias_of(op, 2, 1);
  op.make().name_after(op.item().name, op.out_item().name);
  op.set_activated(op.make().node("Conv", {x, w, bias}, attributes), Layout::First);
}

void read_conv(Op& op) {
  expect_image(op);
  const std::int64_t in = op.in_item(0).shape[3];
  const std::int64_t of_group = weight_shape(op, 1, 4)[3];
  if (in >= 0 && in % of_group != 0) {
    fail(ErrorKind::BadModel, "its input has {} channels, its weight {}", in, of_group);
  }
  convolve(op, {0, 3, 1, 2}, in < 0 ? 1 : in / of_group);
}

void read_depthwise(Op& op) {
  expect_image(op);
  const std::int64_t out = weight_shape(op, 1, 4)[3];
  const std::int64_t in = op.in_item(0).shape[3];
  const std::int64_t groups =
      in >= 0 ? in : out / std::max<std::int64_t>(op.number("multiplier"), 1);
  if (groups <= 0 || out % groups != 0) {
    fail(ErrorKind::BadModel, "its input has {} channels, its weight {}", in, out);
  }
  convolve(op, {3, 0, 1, 2}, groups);
}

struct Transposed {
  Ints strides;
  bool same;
  std::size_t x, weight, bias;
  Ints out;  ///< height and width of the result
};

/// TFLite pads as the convolution that goes the other way would.
void convolve_transposed(Op& op, const Transposed& given) {
  const Shape& weight = weight_shape(op, given.weight, 4);
  expect_image(op, given.x);
  const Shape& in = op.in_item(given.x).shape;
  Ints pads(4, 0), more(2, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    if (given.strides[i] <= 0 || in[i + 1] <= 0 || given.out[i] <= 0) {
      fail(ErrorKind::Unsupported, "its strides or sizes are not known as positive numbers");
    }
    const std::int64_t total = (in[i + 1] - 1) * given.strides[i] + weight[i + 1] - given.out[i];
    if (total < 0) more[i] = -total;
    if (total > 0 && given.same) pads[i] = total / 2;
    if (total > 0) pads[i + 2] = total - pads[i];
    if (more[i] >= given.strides[i] && more[i] > 0) {
      fail(ErrorKind::BadModel, "its result of {} does not fit its input of {}", given.out[i],
           in[i + 1]);
    }
  }
  NodeAttributes attributes{
      {"kernel_shape", Ints{weight[1], weight[2]}}, {"strides", given.strides}, {"pads", pads}};
  if (more != Ints{0, 0}) attributes.emplace_back("output_padding", more);
  const ValueId x = op.in(given.x, Layout::First);
  const ValueId w = op.translator().arranged_constant(op.item().inputs[given.weight], {3, 0, 1, 2});
  const ValueId bias = op.has(given.bias) ? bias_of(op, given.bias, given.weight) : kNoValue;
  op.make().name_after(op.item().name, op.out_item().name);
  op.set_activated(op.make().node("ConvTranspose", {x, w, bias}, attributes), Layout::First);
}

void read_transpose_conv(Op& op) {
  const Ints shape = op.need_ints(0);
  if (shape.size() != 4) fail(ErrorKind::BadModel, "the shape of its result is not of 4 sizes");
  convolve_transposed(op, {.strides = strides_of(op),
                           .same = op.number("padding") == 0,
                           .x = 2,
                           .weight = 1,
                           .bias = 3,
                           .out = {shape[1], shape[2]}});
}

/// MediaPipe's: options are a struct of three integers, padding and strides.
void read_transpose_conv_bias(Op& op) {
  std::array<std::int32_t, 3> options{};
  if (op.item().custom_options.size() < sizeof(options)) {
    fail(ErrorKind::BadModel, "its options have {} bytes, expected {}",
         op.item().custom_options.size(), sizeof(options));
  }
  std::memcpy(options.data(), op.item().custom_options.data(), sizeof(options));
  const Shape& out = op.out_item().shape;
  if (out.size() != 4) fail(ErrorKind::BadModel, "its result has not 4 dimensions");
  convolve_transposed(op, {.strides = {options[2], options[1]},
                           .same = options[0] == 1,
                           .x = 0,
                           .weight = 1,
                           .bias = 2,
                           .out = {out[1], out[2]}});
}

ValueId matrix_of(Op& op, bool transposed) {
  const int index = op.item().inputs[1];
  if (op.translator().constant(index) != nullptr) {
    return op.translator().arranged_constant(index, transposed ? Ints{1, 0} : Ints{0, 1});
  }
  const ValueId w = op.in(1);
  return transposed ? op.make().transpose(w, {1, 0}) : w;
}

/// Rows of as many numbers as the weight takes.
ValueId as_rows(Op& op, std::int64_t inputs) {
  const TensorItem& x = op.in_item(0);
  if (x.rank() == 2) return op.in(0);
  // Integers are reshaped, so that the product finds them right before it.
  const bool any = is_same_in_memory(x.shape);
  const Layout layout = any ? op.translator().layout_of(op.item().inputs[0]) : Layout::Last;
  const ValueId rows = op.make().reshape(op.in(0, layout, Form::Integers), {-1, inputs});
  return x.quantized() ? op.translator().dequantize(rows, x, 0) : rows;
}

void read_fully_connected(Op& op) {
  if (op.number("weights_format") != 0) {
    fail(ErrorKind::Unsupported,
         "its weights are packed (SHUFFLED4x16INT8), which is not read; export them plainly");
  }
  const std::int64_t inputs = weight_shape(op, 1, 2)[1];
  const bool keep = op.number("keep_num_dims") != 0 && op.rank() > 2;
  const ValueId x = keep ? op.in(0) : as_rows(op, inputs);
  const ValueId w = matrix_of(op, keep);
  const ValueId bias = bias_of(op, 2, 1);
  op.make().name_after(op.item().name, op.out_item().name);
  if (!keep) {
    const ValueId y = op.make().node("Gemm", {x, w, bias}, {{"transB", std::int64_t{1}}});
    if (op.out_item().rank() == 2) return op.set_activated(y, Layout::Last);
    return op.set_activated(op.make().reshape(y, op.out_item().shape), Layout::Last);
  }
  const ValueId product = op.make().node("MatMul", {x, w});
  op.set_activated(bias == kNoValue ? product : op.make().node("Add", {product, bias}),
                   Layout::Last);
}

void read_batch_matmul(Op& op) {
  const auto side = [&](std::size_t input, std::string_view flag) {
    const ValueId value = op.in(input);
    if (op.number(flag) == 0) return value;
    const std::int64_t rank = op.rank(input);
    if (rank < 2) fail(ErrorKind::BadModel, "it transposes an input of {} dimensions", rank);
    Ints perm = order_of(Layout::Last, rank);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return op.make().transpose(value, perm);
  };
  const ValueId x = side(0, "adj_x");
  const ValueId y = side(1, "adj_y");
  op.set(op.make().node("MatMul", {x, y}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"CONV_2D", 1,
     "padding:b stride_w:i stride_h:i fused:b dilation_w:i=1 dilation_h:i=1 bias_type:b",
     read_conv},
    {"DEPTHWISE_CONV_2D", 2,
     "padding:b stride_w:i stride_h:i multiplier:i fused:b dilation_w:i=1 dilation_h:i=1",
     read_depthwise},
    {"TRANSPOSE_CONV", 49, "padding:b stride_w:i stride_h:i fused:b bias_type:b",
     read_transpose_conv},
    {"Convolution2DTransposeBias", 0, "fused:b", read_transpose_conv_bias, true},
    {"FULLY_CONNECTED", 8, "fused:b weights_format:b keep_num_dims:t asymmetric:t bias_type:b",
     read_fully_connected},
    {"BATCH_MATMUL", 101, "adj_x:t adj_y:t asymmetric:t", read_batch_matmul},
});

}  // namespace

std::span<const OpRow> layer_rows() { return kRows; }

}  // namespace quench::tflite
