// SPDX-License-Identifier: Apache-2.0
// TensorFlow's layers: convolutions, pools, products of matrices, normalisation.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"
#include "formats/tflite/op.h"

namespace quench::tensorflow {
namespace {

constexpr std::int64_t kSame = 0, kValid = 1;

bool is_first(const Step& step) { return step.text("data_format", "NHWC") == "NCHW"; }

/// An image with channels last, whatever the node's own layout.
int image(Step& step, std::size_t input) {
  const Shape from = step.shape(input);
  if (from.size() != 4) {
    fail(ErrorKind::BadModel, "input {} has the shape {}, expected 4 dimensions", input,
         to_string(from));
  }
  if (!is_first(step)) return step.in(input);
  const Shape last{from[0], from[2], from[3], from[1]};
  return step.make("TRANSPOSE", {step.in(input), step.add_ints({0, 2, 3, 1})}, last,
                   step.dtype(input));
}

void set_image(Step& step, int tensor) {
  if (!is_first(step)) return step.set(tensor);
  const Shape last = step.item(tensor).shape;
  const Shape first{last[0], last[3], last[1], last[2]};
  step.set(step.make("TRANSPOSE", {tensor, step.add_ints({0, 3, 1, 2})}, first, DType::Float32));
}

/// The two numbers of height and width among four.
Ints pair_of(const Step& step, std::string_view name, bool needed) {
  const Ints given = step.numbers(name);
  if (given.empty() && !needed) return {1, 1};
  if (given.size() != 4) fail(ErrorKind::BadModel, "its {} are not four numbers", name);
  const std::size_t at = is_first(step) ? 2 : 1;
  constexpr std::int64_t kMost = 1 << 16;
  const Ints result{given[at], given[at + 1]};
  const bool others = given[0] == 1 && given[is_first(step) ? 1 : 3] == 1;
  if (!others || std::ranges::any_of(result, [](auto each) { return each <= 0 || each > kMost; })) {
    fail(ErrorKind::Unsupported, "its {} are {}, which is not read", name, to_string(given));
  }
  return result;
}

struct Sliding {
  Ints kernel, strides, dilations = {1, 1};
  std::int64_t padding = kValid;
};

/// An image that is padded as the node says by numbers; then nothing is left to pad.
int padded(Step& step, int x, Sliding& window) {
  const std::string padding = step.text("padding", "VALID");
  window.padding = padding == "SAME" ? kSame : kValid;
  if (padding == "SAME" || padding == "VALID") return x;
  const Ints given = step.numbers("explicit_paddings");
  if (padding != "EXPLICIT" || given.size() != 8) {
    fail(ErrorKind::Unsupported, "its padding is '{}', which is not read", padding);
  }
  Ints pairs = given;
  if (is_first(step))
    pairs = {given[0], given[1], given[4], given[5], given[6], given[7], given[2], given[3]};
  Shape shape = step.item(x).shape;
  std::vector<std::int32_t> numbers;
  for (std::size_t i = 0; i < 8; ++i) {
    constexpr std::int64_t kMost = 1 << 16;
    if (pairs[i] < 0 || pairs[i] > kMost) fail(ErrorKind::BadModel, "it pads by {}", pairs[i]);
    if (shape[i / 2] >= 0) shape[i / 2] += pairs[i];
    numbers.push_back(static_cast<std::int32_t>(pairs[i]));
  }
  const int amounts =
      step.add_constant(step.result_name() + "/pads",
                        Tensor::of<std::int32_t>({4, 2}, std::span<const std::int32_t>(numbers)));
  return step.make("PAD", {x, amounts}, shape, DType::Float32);
}

Shape slid(const Shape& in, const Sliding& window, std::int64_t channels) {
  Shape out{in[0], -1, -1, channels};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t size = in[i + 1];
    if (size < 0) continue;
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t step = window.strides[i];
    out[i + 1] = window.padding == kSame ? (size + step - 1) / step : (size - reach) / step + 1;
    if (out[i + 1] < 0 || (window.padding == kValid && size < reach)) {
      fail(ErrorKind::BadModel, "its kernel of {} is larger than its input of {}", reach, size);
    }
  }
  return out;
}

Options options_of(const Sliding& window) {
  return {{"padding", window.padding},
          {"stride_h", window.strides[0]},
          {"stride_w", window.strides[1]},
          {"dilation_h", window.dilations[0]},
          {"dilation_w", window.dilations[1]}};
}

/// A constant weight with its dimensions in another order.
int weight(Step& step, std::size_t input, const Ints& perm) {
  const Tensor data = step.need_constant(input);
  if (data.rank() != std::ssize(perm)) {
    fail(ErrorKind::BadModel, "its weight has the shape {}, expected {} dimensions",
         to_string(data.shape()), perm.size());
  }
  const tflite::TensorItem from = step.item(step.in(input));
  const int made = step.add_constant(from.name, permuted(data, perm));
  tflite::Quantization scales = from.quantization;
  scales.axis = std::ranges::find(perm, scales.axis) - perm.begin();
  step.mutable_item(made).quantization = scales;
  return made;
}

void lower_conv(Step& step) {
  Sliding window{.kernel = {},
                 .strides = pair_of(step, "strides", true),
                 .dilations = pair_of(step, "dilations", false)};
  const int x = padded(step, image(step, 0), window);
  const int w = weight(step, 1, {3, 0, 1, 2});
  const Shape of = step.item(w).shape;
  window.kernel = {of[1], of[2]};
  const Shape out = slid(step.item(x).shape, window, of[0]);
  set_image(step, step.make("CONV_2D", {x, w}, out, DType::Float32, options_of(window)));
}

void lower_depthwise(Step& step) {
  Sliding window{.kernel = {},
                 .strides = pair_of(step, "strides", true),
                 .dilations = pair_of(step, "dilations", false)};
  const int x = padded(step, image(step, 0), window);
  const Tensor data = step.need_constant(1);
  if (data.rank() != 4) fail(ErrorKind::BadModel, "its weight has not 4 dimensions");
  const Shape of = data.shape();
  window.kernel = {of[0], of[1]};
  const tflite::TensorItem from = step.item(step.in(1));
  if (from.quantization.scale.size() > 1) {
    fail(ErrorKind::Unsupported, "its weight has a scale for each channel, which is not read");
  }
  const int w = step.add_constant(from.name, data.reshaped({1, of[0], of[1], of[2] * of[3]}));
  step.mutable_item(w).quantization = from.quantization;
  Options options = options_of(window);
  options.push_back({"multiplier", of[3]});
  const Shape out = slid(step.item(x).shape, window, of[2] * of[3]);
  set_image(step, step.make("DEPTHWISE_CONV_2D", {x, w}, out, DType::Float32, options));
}

/// A convolution the other way round: the shape of its result, weights, what comes in.
void lower_transposed(Step& step) {
  if (is_first(step)) fail(ErrorKind::Unsupported, "channels first are not read here");
  const auto shape = step.sizes(0);
  if (!shape || shape->size() != 4 || pair_of(step, "dilations", false) != Ints{1, 1}) {
    fail(ErrorKind::Unsupported, "the shape of its result is not known, or it is dilated");
  }
  Sliding window{.kernel = {}, .strides = pair_of(step, "strides", true)};
  const int x = padded(step, image(step, 2), window);
  const int w = weight(step, 1, {2, 0, 1, 3});
  Ints sizes = *shape;
  std::ranges::replace(sizes, kOpen, 1);
  const int target = step.add_ints(sizes);
  const Shape out{step.shape(2)[0], sizes[1], sizes[2], step.item(w).shape[0]};
  step.set(step.make("TRANSPOSE_CONV", {target, w, x}, out, DType::Float32, options_of(window)));
}

/// A constant bias belongs to the layer before it, where nothing else reads that.
bool join(Step& step) {
  if (step.constant(1) == nullptr || !step.is_only_reader(0) || step.rank(1) != 1) return false;
  const auto found = step.state().makers.find(step.in(0));
  if (found == step.state().makers.end()) return false;
  tflite::OpItem& layer = step.state().program.ops[static_cast<std::size_t>(found->second)];
  const bool takes = layer.name == "CONV_2D" || layer.name == "DEPTHWISE_CONV_2D" ||
                     layer.name == "FULLY_CONNECTED";
  const std::int64_t channels = step.shape(0).back();
  if (!takes || layer.inputs.size() != 2 || step.constant(1)->size() != channels ||
      step.dtype(1) != DType::Float32) {
    return false;
  }
  layer.inputs.push_back(step.in(1));
  step.mutable_item(step.in(0)).name = step.result_name();
  step.set(step.in(0));
  return true;
}

void lower_bias(Step& step) {
  if (!is_first(step) && step.rank() > 0 && join(step)) return;
  if (!is_first(step) || step.rank() != 4) {
    return step.set(step.make("ADD", {step.in(0), step.in(1)}, step.shape(), step.dtype()));
  }
  const int x = image(step, 0);
  set_image(step, step.make("ADD", {x, step.in(1)}, step.item(x).shape, DType::Float32));
}

template <const char* kOp>
void lower_pool(Step& step) {
  Sliding window{.kernel = pair_of(step, "ksize", true), .strides = pair_of(step, "strides", true)};
  const std::string padding = step.text("padding", "VALID");
  if (padding != "SAME" && padding != "VALID") {
    fail(ErrorKind::Unsupported, "its padding is '{}', which is not read", padding);
  }
  const int x = padded(step, image(step, 0), window);
  Options options = options_of(window);
  options.push_back({"filter_h", window.kernel[0]});
  options.push_back({"filter_w", window.kernel[1]});
  const Shape out = slid(step.item(x).shape, window, step.item(x).shape[3]);
  set_image(step, step.make(kOp, {x}, out, DType::Float32, options));
}

constexpr char kMax[] = "MAX_POOL_2D";
constexpr char kAverage[] = "AVERAGE_POOL_2D";

void lower_matmul(Step& step) {
  if (step.rank(0) < 2 || step.rank(1) < 2) fail(ErrorKind::BadModel, "its inputs are no matrices");
  const bool batch = step.op() != "MatMul";
  const bool a = step.flag(batch ? "adj_x" : "transpose_a", false);
  const bool b = step.flag(batch ? "adj_y" : "transpose_b", false);
  const Shape x = step.shape(0);
  const Shape y = step.shape(1);
  const std::int64_t columns = y[y.size() - (b ? 2 : 1)];
  if (!a && step.constant(1) != nullptr && y.size() == 2 && x.size() == 2) {
    const int w = weight(step, 1, b ? Ints{0, 1} : Ints{1, 0});
    return step.set(step.make("FULLY_CONNECTED", {step.in(0), w}, {x[0], columns}, DType::Float32));
  }
  Shape out = broadcast(Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2));
  out.push_back(x[x.size() - (a ? 1 : 2)]);
  out.push_back(columns);
  step.set(step.make("BATCH_MATMUL", {step.in(0), step.in(1)}, out, step.dtype(),
                     {{"adj_x", std::int64_t{a}}, {"adj_y", std::int64_t{b}}}));
}

/// TFLite has no normalisation of its own; ONNX's has TensorFlow's inputs.
void read_batch_norm(tflite::Op& op) {
  const ValueId x = op.in(0, tflite::Layout::First);
  std::vector<ValueId> inputs{x};
  for (std::size_t i = 1; i < 5; ++i) inputs.push_back(op.in(i));
  op.set(op.make().node("BatchNormalization", inputs,
                        {{"epsilon", static_cast<float>(op.real("epsilon"))}}),
         tflite::Layout::First);
}

void lower_batch_norm(Step& step) {
  if (step.flag("is_training", true)) {
    fail(ErrorKind::Unsupported,
         "it normalises by the batch (is_training), as in training; export the graph for "
         "inference");
  }
  const int x = image(step, 0);
  const std::int64_t channels = step.item(x).shape[3];
  for (std::size_t i = 1; i < 5; ++i) {
    if (step.rank(i) == 1 && (channels < 0 || step.shape(i)[0] == channels)) continue;
    fail(ErrorKind::BadModel, "input {} has the shape {}, but there are {} channels", i,
         to_string(step.shape(i)), channels);
  }
  constexpr double kUsual = 1e-4;
  set_image(step, step.make("FusedBatchNorm", {x, step.in(1), step.in(2), step.in(3), step.in(4)},
                            step.item(x).shape, DType::Float32,
                            {{"epsilon", step.real("epsilon", kUsual)}}, read_batch_norm));
}

void lower_lrn(Step& step) {
  const std::int64_t radius = step.number("depth_radius", 5);
  constexpr std::int64_t kMost = 1 << 16;
  if (radius < 0 || radius > kMost) fail(ErrorKind::BadModel, "its depth_radius is {}", radius);
  step.set(step.make("LOCAL_RESPONSE_NORMALIZATION", {image(step, 0)}, step.shape(), DType::Float32,
                     {{"radius", radius},
                      {"bias", step.real("bias", 1)},
                      {"alpha", step.real("alpha", 1)},
                      {"beta", step.real("beta", 0.5)}}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Conv2D", lower_conv},
    {"DepthwiseConv2dNative", lower_depthwise},
    {"Conv2DBackpropInput", lower_transposed},
    {"BiasAdd", lower_bias},
    {"MaxPool", lower_pool<kMax>},
    {"AvgPool", lower_pool<kAverage>},
    {"MatMul", lower_matmul},
    {"BatchMatMul", lower_matmul},
    {"BatchMatMulV2", lower_matmul},
    {"BatchMatMulV3", lower_matmul},
    {"FusedBatchNorm", lower_batch_norm},
    {"FusedBatchNormV2", lower_batch_norm},
    {"FusedBatchNormV3", lower_batch_norm},
    {"LRN", lower_lrn},
});

}  // namespace

std::span<const OpRow> layer_rows() { return kRows; }

}  // namespace quench::tensorflow
