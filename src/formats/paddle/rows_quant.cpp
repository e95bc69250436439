// SPDX-License-Identifier: Apache-2.0
// Paddle's quantisation in its newer form; `unify_quantization` turns the older ones into it.
// A "scale" of Paddle's is the largest number that fits: 127 of our scales for 8 bits.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

struct Integers {
  DType dtype;
  double largest;
};

Integers integers_of(Op& op) {
  const std::int64_t bits = op.integer("bit_length");
  constexpr std::int64_t kByte = 8;
  constexpr std::int64_t kWord = 16;
  if (bits < 2 || bits > kWord) {
    fail(ErrorKind::Unsupported, "it quantises to {} bits; 2 to 16 are known", bits);
  }
  return {bits <= kByte ? DType::Int8 : DType::Int16,
          static_cast<double>((std::int64_t{1} << (bits - 1)) - 1)};
}

/// Our scale: a scalar, or one for each channel.
struct Scale {
  ValueId value = kNoValue;
  std::int64_t axis = -1;  ///< of channels; -1: per tensor
  std::int64_t count = 1;
};

Scale scale_of(Op& op, double largest) {
  const ValueId given = op.in("Scale");
  const Tensor* tensor = op.constant_of(given);
  if (tensor == nullptr) {
    const ValueId number = op.reshape(given, {});
    return {op.node("Div", {number, op.scalar(largest, DType::Float32)}), -1, 1};
  }
  std::vector<float> values = to_float(*tensor);
  for (float& value : values) {
    if (!std::isfinite(value) || value < 0) {
      fail(ErrorKind::BadModel, "its scale is {}, which is no largest number", value);
    }
    // What Paddle's kernels divide by where a channel is empty.
    constexpr float kLeast = 1e-6F;
    value = std::max(value, kLeast) / static_cast<float>(largest);
  }
  const auto count = std::ssize(values);
  const Shape shape = count == 1 ? Shape() : Shape{count};
  const std::int64_t axis = count == 1 ? -1 : op.integer("quant_axis");
  if (count > 1 && axis < 0) {
    fail(ErrorKind::BadModel, "it has {} scales, but its quant_axis says that one is for all",
         count);
  }
  return {op.constant(Tensor::of<float>(shape, std::span<const float>(values))), axis, count};
}

ValueId zero_point(Op& op, const Scale& scale, DType dtype) {
  return op.constant(Tensor::zeros(dtype, scale.count == 1 ? Shape() : Shape{scale.count}));
}

Attributes axis_of(const Scale& scale) {
  if (scale.count == 1) return {};
  return {{"axis", scale.axis}};
}

/// Paddle keeps the scales of such pairs for who deploys the model; it computes nothing.
bool only_tells(Op& op) {
  if (!op.flag("only_observer")) return false;
  op.alias("Y", op.in("X"));
  return true;
}

void read_quantize(Op& op) {
  if (only_tells(op)) return;
  const Integers integers = integers_of(op);
  const Scale scale = scale_of(op, integers.largest);
  const ValueId y =
      op.node("QuantizeLinear", {op.in("X"), scale.value, zero_point(op, scale, integers.dtype)},
              axis_of(scale));
  op.translator().graph()[y].type = ValueType::tensor(integers.dtype);
  op.set("Y", y);
}

/// Weights as integers: files of Paddle's newer interface hold them as floats. A constant that
/// nothing else reads keeps its name.
ValueId whole_weights(Op& op, ValueId value, const Tensor& weights, DType dtype) {
  if (weights.dtype() == dtype) return value;
  for (const float weight : to_float(weights)) {
    if (weight == std::trunc(weight) && std::abs(weight) <= 32768) continue;
    fail(ErrorKind::BadModel, "the weights it dequantises are no integers ({})", weight);
  }
  Graph& graph = op.translator().graph();
  Tensor whole = convert(weights, dtype);
  if (op.translator().num_readers(graph[value].name) > 1) return op.constant(std::move(whole));
  graph[value].type = ValueType::of(whole);
  graph[value].constant = std::move(whole);
  return value;
}

void read_dequantize(Op& op) {
  if (only_tells(op)) return;
  const Integers integers = integers_of(op);
  const Scale scale = scale_of(op, integers.largest);
  ValueId x = op.in("X");
  if (const Tensor* weights = op.constant_of(x)) {
    x = whole_weights(op, x, *weights, integers.dtype);
  } else if (op.translator().graph()[x].type.dtype != integers.dtype) {
    if (scale.count != 1) fail(ErrorKind::Unsupported, "it scales channels of what is not integer");
    op.set("Y", op.node("Mul", {x, scale.value}));
    return;
  }
  op.set("Y", op.node("DequantizeLinear", {x, scale.value, zero_point(op, scale, integers.dtype)},
                      axis_of(scale)));
}

/// The largest magnitude of each channel, or of all.
std::vector<float> largest_of(std::span<const float> values, const Shape& shape,
                              std::int64_t axis) {
  if (axis < 0) {
    float most = 0;
    for (const float value : values) most = std::max(most, std::abs(value));
    return {most};
  }
  const auto at = static_cast<std::size_t>(axis);
  std::size_t inner = 1;
  for (std::size_t i = at + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  const auto channels = static_cast<std::size_t>(shape[at]);
  std::vector<float> most(channels, 0.0F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& here = most[i / inner % channels];
    here = std::max(here, std::abs(values[i]));
  }
  return most;
}

/// Weights that are still floats: their scale is their own largest magnitude.
void quantize_weights(Op& op, std::int64_t axis) {
  const Tensor* weights = op.constant_of(op.in("X"));
  if (weights == nullptr) {
    fail(ErrorKind::Unsupported, "it quantises what is no parameter by its own largest number");
  }
  if (axis >= weights->rank()) fail(ErrorKind::BadModel, "its quant_axis is {}", axis);
  const Integers integers = integers_of(op);
  const std::vector<float> values = to_float(*weights);
  std::vector<float> scales = largest_of(values, weights->shape(), axis);
  Tensor whole = Tensor::zeros(integers.dtype, weights->shape());
  std::vector<float> rounded(values.size());
  std::size_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis + 1); axis >= 0 && i < weights->shape().size();
       ++i) {
    inner *= static_cast<std::size_t>(weights->shape()[i]);
  }
  constexpr float kLeast = 1e-6F;
  for (float& scale : scales)
    scale = std::max(scale, kLeast) / static_cast<float>(integers.largest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    rounded[i] = std::round(values[i] / scales[i / inner % scales.size()]);
  }
  whole =
      convert(Tensor::of<float>(weights->shape(), std::span<const float>(rounded)), integers.dtype);
  const auto count = std::ssize(scales);
  const Scale scale{op.constant(Tensor::of<float>(count == 1 ? Shape() : Shape{count},
                                                  std::span<const float>(scales))),
                    axis, count};
  op.set("Out", op.node("DequantizeLinear",
                        {op.constant(std::move(whole)), scale.value,
                         zero_point(op, scale, integers.dtype)},
                        axis_of(scale)));
}

void read_channel_wise(Op& op) { quantize_weights(op, op.integer("quant_axis")); }
void read_whole(Op& op) { quantize_weights(op, -1); }
void read_observer(Op& op) { op.alias("Out", op.in("X")); }

constexpr std::string_view kInputs = "X Scale ZeroPoint InAccum InState";
constexpr std::string_view kOutputs = "Y OutState OutAccum OutScale";
constexpr std::string_view kAttributes = "quant_axis=0 bit_length=8 only_observer=false";

constexpr auto kRows = std::to_array<OpRow>({
    {"quantize_linear", "", kInputs, kOutputs, kAttributes, read_quantize},
    {"dequantize_linear", "", kInputs, kOutputs, kAttributes, read_dequantize},
    {"fake_channel_wise_quantize_dequantize_abs_max", "", "X", "Out OutScale",
     "quant_axis=0 bit_length=8", read_channel_wise},
    {"fake_quantize_dequantize_abs_max", "", "X", "Out OutScale", "bit_length=8", read_whole},
    {"moving_average_abs_max_scale", "", "X InAccum InState", "Out OutScale OutState OutAccum", "",
     read_observer},
});

}  // namespace

std::span<const OpRow> quant_rows() { return kRows; }

}  // namespace quench::paddle
