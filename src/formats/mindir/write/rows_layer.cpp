// SPDX-License-Identifier: Apache-2.0
// Layers as MindIR's: convolutions, products, pools, normalisation.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/mindir/write/writer.h"

namespace quench::mindir::write {

Ints pads_of(const Writer& writer, const Node& node, const Ints& kernel) {
  const std::string automatic = node.get_string("auto_pad", "NOTSET");
  Ints pads = node.get_ints("pads");
  if (pads.empty()) pads.assign(2 * kernel.size(), 0);
  if (automatic == "NOTSET" || automatic == "VALID") return pads;
  const Shape in = writer.known_shape(node.inputs[0]);
  Ints strides = node.get_ints("strides"), dilations = node.get_ints("dilations");
  strides.resize(kernel.size(), 1);
  dilations.resize(kernel.size(), 1);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t steps = (in[i + 2] + strides[i] - 1) / strides[i];
    const std::int64_t total =
        std::max<std::int64_t>((steps - 1) * strides[i] + reach - in[i + 2], 0);
    const std::int64_t less = total / 2;
    pads[i] = automatic == "SAME_UPPER" ? less : total - less;
    pads[i + kernel.size()] = total - pads[i];
  }
  return pads;
}

namespace {

void expect_image(const Writer& writer, const Node& node) {
  if (writer.rank(node.inputs[0]) == 4) return;
  fail(ErrorKind::Unsupported, "only images, with 4 dimensions, are written");
}

Ints or_ones(Ints given) {
  if (given.empty()) given.assign(2, 1);
  return given;
}

/// What a convolution's primitive says; pads in MindIR's order, begin and end side by side.
Attributes conv_attributes(const Node& node, const Ints& kernel, const Ints& pads,
                           std::int64_t channels, std::string_view mode) {
  const Ints strides = or_ones(node.get_ints("strides"));
  const Ints dilations = or_ones(node.get_ints("dilations"));
  const Ints pairs{pads[0], pads[2], pads[1], pads[3]};
  const std::int64_t group = node.get_int("group", 1);
  return {tuple("kernel_size", kernel),
          whole("mode", 1),
          whole("out_channel", channels),
          tuple("pad", pairs),
          text("pad_mode", mode),
          text("format", "NCHW"),
          tuple("pad_list", pairs),
          whole("groups", group),
          tuple("stride", {1, 1, strides[0], strides[1]}),
          whole("group", group),
          tuple("dilation", {1, 1, dilations[0], dilations[1]})};
}

/// A layer and, where there is one, its bias.
void add_layer(Writer& writer, const Node& node, std::string_view op, const Attributes& attributes,
               const std::vector<std::string>& inputs) {
  const ValueId result = node.outputs[0];
  if (node.input(2) == kNoValue) return writer.add(op, attributes, inputs, result);
  const std::string sum = writer.between(op, attributes, inputs, writer.graph()[result].type.dtype,
                                         writer.shape(result));
  writer.add("BiasAdd", {sum, writer.name(node.inputs[2]), writer.argument(std::int64_t{0})},
             result);
}

void write_conv(Writer& writer, const Node& node) {
  expect_image(writer, node);
  const Shape weight = writer.known_shape(node.inputs[1]);
  const Ints kernel{weight[2], weight[3]};
  const Ints pads = pads_of(writer, node, kernel);
  add_layer(writer, node, "Conv2D", conv_attributes(node, kernel, pads, weight[0], "pad"),
            {writer.name(node.inputs[0]), writer.name(node.inputs[1])});
}

void write_conv_transpose(Writer& writer, const Node& node) {
  expect_image(writer, node);
  const Shape weight = writer.known_shape(node.inputs[1]);
  const Ints kernel{weight[2], weight[3]};
  if (node.get_string("auto_pad", "NOTSET") != "NOTSET" || !node.get_ints("output_shape").empty()) {
    fail(ErrorKind::Unsupported, "only pads that are given as numbers are written");
  }
  const Ints pads = pads_of(writer, node, kernel);
  const Ints out = writer.known_shape(node.outputs[0]);
  add_layer(writer, node, "Conv2DTranspose", conv_attributes(node, kernel, pads, weight[0], "PAD"),
            {writer.name(node.inputs[0]), writer.name(node.inputs[1]), writer.argument(out)});
}

void write_gemm(Writer& writer, const Node& node) {
  const bool plain = node.get_float("alpha", 1) == 1 && node.get_float("beta", 1) == 1;
  const ValueId bias = node.input(2);
  if (!plain || (bias != kNoValue && writer.rank(bias) != 1)) {
    fail(ErrorKind::Unsupported,
         "only products without factors and with a bias of one row are "
         "written");
  }
  add_layer(writer, node, "MatMul", {},
            {writer.name(node.inputs[0]), writer.name(node.inputs[1]),
             writer.argument(node.get_int("transA", 0) != 0),
             writer.argument(node.get_int("transB", 0) != 0)});
}

void write_matmul(Writer& writer, const Node& node) {
  writer.add("MatMulExt", {writer.name(node.inputs[0]), writer.name(node.inputs[1])},
             node.outputs[0]);
}

void write_batch_norm(Writer& writer, const Node& node) {
  if (node.get_int("training_mode", 0) != 0) fail(ErrorKind::Unsupported, "it is in training");
  std::vector<std::string> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(writer.name(id));
  constexpr double kMomentum = 0.1;
  inputs.push_back(writer.argument(false));
  inputs.push_back(writer.argument(static_cast<double>(node.get_float("epsilon", 1e-5F))));
  inputs.push_back(writer.argument(kMomentum));
  inputs.push_back(writer.argument(std::int64_t{0}));
  const std::string all = writer.between("BatchNorm", inputs, DType::Undefined, {});
  writer.take(all, 0, node.outputs[0]);
}

void write_layer_norm(Writer& writer, const Node& node) {
  const std::int64_t axis = node.get_int("axis", -1);
  if (node.input(2) == kNoValue) fail(ErrorKind::Unsupported, "it has no shift");
  const std::string all =
      writer.between("LayerNorm",
                     {writer.name(node.inputs[0]), writer.name(node.inputs[1]),
                      writer.name(node.inputs[2]), writer.argument(axis), writer.argument(axis),
                      writer.argument(static_cast<double>(node.get_float("epsilon", 1e-5F)))},
                     DType::Undefined, {});
  writer.take(all, 0, node.outputs[0]);
}

/// The input of a pool, padded where MindIR's pool cannot.
std::string padded(Writer& writer, const Node& node, const Ints& pads, double with) {
  const std::string x = writer.name(node.inputs[0]);
  if (std::ranges::count(pads, 0) == 4) return x;
  Shape shape = writer.shape(node.inputs[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (shape[i + 2] >= 0) shape[i + 2] += pads[i] + pads[i + 2];
  }
  return writer.between(
      "PadV3", {text("mode", "constant"), truth("paddings_contiguous", true)},
      {x, writer.argument(Ints{pads[1], pads[3], pads[0], pads[2]}),
       writer.tensor(convert(Tensor::scalar(with), writer.graph()[node.inputs[0]].type.dtype))},
      writer.graph()[node.inputs[0]].type.dtype, shape);
}

/// Pads with what rounding sizes up needs behind.
Ints pool_pads(const Writer& writer, const Node& node, const Ints& kernel, const Ints& strides) {
  Ints pads = pads_of(writer, node, kernel);
  if (node.get_int("ceil_mode", 0) == 0) return pads;
  const Shape in = writer.known_shape(node.inputs[0]), out = writer.known_shape(node.outputs[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t need = (out[i + 2] - 1) * strides[i] + kernel[i] - in[i + 2] - pads[i];
    pads[i + 2] = std::max(pads[i + 2], need);
  }
  return pads;
}

void write_max_pool(Writer& writer, const Node& node) {
  expect_image(writer, node);
  const Ints kernel = node.get_ints("kernel_shape"), strides = or_ones(node.get_ints("strides"));
  const Ints dilations = or_ones(node.get_ints("dilations"));
  if (dilations != Ints{1, 1} || node.outputs.size() != 1) {
    fail(ErrorKind::Unsupported, "dilated pools, and those that tell places, are not written");
  }
  constexpr double kLeast = -3.4e38;
  const std::string x = padded(writer, node, pool_pads(writer, node, kernel, strides), kLeast);
  writer.add("MaxPool",
             {text("pad_mode", "VALID"), tuple("kernel_size", {1, 1, kernel[0], kernel[1]}),
              text("format", "NCHW"), tuple("strides", {1, 1, strides[0], strides[1]})},
             {x}, node.outputs[0]);
}

void write_average_pool(Writer& writer, const Node& node) {
  expect_image(writer, node);
  const Ints kernel = node.get_ints("kernel_shape"), strides = or_ones(node.get_ints("strides"));
  const Ints pads = pool_pads(writer, node, kernel, strides);
  const bool none = std::ranges::count(pads, 0) == 4;
  constexpr std::int64_t kSame = 1, kValid = 2;
  std::int64_t mode = kValid;
  std::string x = writer.name(node.inputs[0]);
  if (!none && node.get_int("count_include_pad", 0) != 0 && node.get_int("ceil_mode", 0) == 0) {
    x = padded(writer, node, pads, 0);
  } else if (!none) {
    // What is not counted can only be told as SAME.
    Node same = node;
    same.set("auto_pad", std::string("SAME_UPPER"));
    if (pads_of(writer, same, kernel) != pads || node.get_int("count_include_pad", 0) != 0) {
      fail(ErrorKind::Unsupported, "its pads, which are not counted, are not those of SAME");
    }
    mode = kSame;
  }
  writer.add("AvgPool",
             {x, writer.argument(kernel), writer.argument(strides), writer.argument(mode),
              writer.argument(std::int64_t{0})},
             node.outputs[0]);
}

template <const char* kOp>
void write_global_pool(Writer& writer, const Node& node) {
  expect_image(writer, node);
  writer.add(kOp, {writer.name(node.inputs[0]), writer.argument(Ints{2, 3}), writer.argument(true)},
             node.outputs[0]);
}

constexpr char kMean[] = "ReduceMean";
constexpr char kMax[] = "ReduceMax";

constexpr auto kRows = std::to_array<WriteRow>({
    {"Conv", write_conv},
    {"ConvTranspose", write_conv_transpose},
    {"Gemm", write_gemm},
    {"MatMul", write_matmul},
    {"BatchNormalization", write_batch_norm},
    {"LayerNormalization", write_layer_norm},
    {"MaxPool", write_max_pool},
    {"AveragePool", write_average_pool},
    {"GlobalAveragePool", write_global_pool<kMean>},
    {"GlobalMaxPool", write_global_pool<kMax>},
});

}  // namespace

std::span<const WriteRow> layer_rows() { return kRows; }

}  // namespace quench::mindir::write
