// SPDX-License-Identifier: Apache-2.0
// MindIR's layers with weights: convolutions and products of matrices, also as MindSpore Lite fuses
// them with bias and activation.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/mindir/rows.h"
#include "formats/mindir/window.h"

namespace quench::mindir {
namespace {

/// A weight with channels in front, as ONNX has it.
ValueId weight_of(Op& op, const Window& window) {
  if (!window.last) return op.in(1);
  const Tensor* data = op.constant(1);
  if (data == nullptr || data->rank() != 4) {
    fail(ErrorKind::Unsupported, "its weight is no constant of 4 dimensions, with channels last");
  }
  return op.make().constant(permuted(*data, {0, 3, 1, 2}));
}

void read_conv(Op& op) {
  const Window window = window_of(op, "stride");
  NodeAttributes attributes = attributes_of(window);
  attributes.emplace_back("group", op.number("group", op.number("groups", 1)));
  std::vector<ValueId> inputs{image_in(op, window), weight_of(op, window)};
  if (op.has(2)) inputs.push_back(op.in(2));
  set_image(op, window, op.activated(op.make().node("Conv", inputs, attributes)));
}

/// What the shape of the result has more than the kernel's reach gives.
Ints more_of(Op& op, const Window& window) {
  Ints more = op.ints("output_paddings").value_or(Ints{0, 0});
  const auto in = op.shape(0);
  const auto out = op.ints("input_size", 2);
  if (!in || !out || in->size() != 4 || out->size() != 4) return more;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t size =
        ((*in)[i + 2] - 1) * window.strides[i] + reach - window.pads[i] - window.pads[i + 2];
    if ((*in)[i + 2] < 0 || (*out)[i + 2] < 0) continue;
    more[i] = (*out)[i + 2] - size;
    if (more[i] < 0 || more[i] >= std::max<std::int64_t>(window.strides[i], 1)) {
      fail(ErrorKind::BadModel, "its result of {} does not fit its input of {}", (*out)[i + 2],
           (*in)[i + 2]);
    }
  }
  return more;
}

void read_conv_transpose(Op& op) {
  const Window window = window_of(op, "stride");
  if (window.last) fail(ErrorKind::Unsupported, "channels last are not read here");
  NodeAttributes attributes = attributes_of(window);
  attributes.emplace_back("group", op.number("group", op.number("groups", 1)));
  const Ints more = more_of(op, window);
  if (more != Ints{0, 0}) attributes.emplace_back("output_padding", more);
  std::vector<ValueId> inputs{op.in(0), op.in(1)};
  const bool lite = op.name() == "Conv2dTransposeFusion" && op.has(2);
  if (lite) inputs.push_back(op.in(2));
  op.set(op.activated(op.make().node("ConvTranspose", inputs, attributes)));
}

/// A bias belongs to the layer right before it, where nothing else reads that.
bool join(Op& op, ValueId x, ValueId bias) {
  std::vector<Node>& nodes = op.make().graph().nodes;
  if (!op.only_reader || nodes.empty() || op.make().graph().constant(bias) == nullptr) return false;
  Node& layer = nodes.back();
  const bool takes =
      layer.op_type == "Conv" || layer.op_type == "ConvTranspose" || layer.op_type == "Gemm";
  if (!takes || layer.outputs[0] != x || layer.inputs.size() != 2) return false;
  layer.inputs.push_back(bias);
  op.set(x);
  return true;
}

void read_bias_add(Op& op) {
  const ValueId x = op.in(0);
  const ValueId bias = op.in(1);
  if (join(op, x, bias)) return;
  const auto shape = op.shape(0);
  const auto rank = shape ? std::ssize(*shape) : 2;
  if (rank <= 2 || op.text("format", "NCHW") == "NHWC") {
    return op.set(op.make().node("Add", {x, bias}));
  }
  Ints whole(static_cast<std::size_t>(rank), 1);
  whole[1] = -1;
  const Tensor* data = op.constant(1);
  if (data != nullptr) whole[1] = data->size();
  const ValueId placed = data == nullptr ? op.make().reshape(bias, whole)
                                         : op.make().constant(Tensor(*data).reshaped(whole));
  op.set(op.make().node("Add", {x, placed}));
}

/// The last two dimensions change places.
ValueId turned(Op& op, std::size_t input) {
  if (const Tensor* data = op.constant(input); data != nullptr && data->rank() == 2) {
    return op.make().constant(permuted(*data, {1, 0}));
  }
  const auto shape = op.shape(input);
  if (!shape || shape->size() < 2) {
    fail(ErrorKind::Unsupported, "it transposes an input whose dimensions are not known");
  }
  Ints perm;
  for (std::int64_t i = 0; i < std::ssize(*shape); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return op.make().transpose(op.in(input), perm);
}

void read_matmul(Op& op) {
  op.set(op.make().node(
      "Gemm", {op.in(0), op.in(1)},
      {{"transA", op.number("transpose_a", 0, 2)}, {"transB", op.number("transpose_b", 0, 3)}}));
}

void read_batch_matmul(Op& op) {
  const bool a = op.number("transpose_a", 0, 2) != 0, b = op.number("transpose_b", 0, 3) != 0;
  const ValueId x = a ? turned(op, 0) : op.in(0);
  const ValueId y = b ? turned(op, 1) : op.in(1);
  op.set(op.make().node("MatMul", {x, y}));
}

/// MindSpore Lite's: of any rank, with a bias behind.
void read_matmul_fusion(Op& op) {
  const ValueId x = op.number("transpose_a", 0) != 0 ? turned(op, 0) : op.in(0);
  const ValueId y = op.number("transpose_b", 0) != 0 ? turned(op, 1) : op.in(1);
  ValueId product = op.make().node("MatMul", {x, y});
  if (op.has(2)) product = op.make().node("Add", {product, op.in(2)});
  op.set(op.activated(product));
}

/// Rows of a matrix of [outputs, inputs]; dimensions from `axis` on are one.
void read_full_connection(Op& op) {
  const std::int64_t axis = op.number("use_axis", 0) != 0 ? op.number("axis", 1) : 1;
  ValueId x = op.in(0);
  const auto shape = op.shape(0);
  if (!shape || shape->size() != 2) x = op.make().node("Flatten", {x}, {{"axis", axis}});
  std::vector<ValueId> inputs{x, op.in(1)};
  if (op.has(2)) inputs.push_back(op.in(2));
  op.set(op.activated(op.make().node("Gemm", inputs, {{"transB", std::int64_t{1}}})));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Conv2D", read_conv},
    {"Conv2DFusion", read_conv},
    {"Conv2DTranspose", read_conv_transpose},
    {"Conv2DBackpropInput", read_conv_transpose},
    {"Conv2dTransposeFusion", read_conv_transpose},
    {"BiasAdd", read_bias_add},
    {"MatMul", read_matmul},
    {"BatchMatMul", read_batch_matmul},
    {"MatMulExt", read_batch_matmul},
    {"MatMulFusion", read_matmul_fusion},
    {"FullConnection", read_full_connection},
});

}  // namespace

std::span<const OpRow> layer_rows() { return kRows; }

}  // namespace quench::mindir
