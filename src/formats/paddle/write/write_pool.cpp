// SPDX-License-Identifier: Apache-2.0
// Pools and changes of size.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

void global_pool(const NodeWriter& node, const char* kind) {
  if (node.rank(0) != 4) node.refuse("only pools over two axes are written");
  node.unary("pool2d")
      .set("pooling_type", kind)
      .set("ksize", Ints{1, 1})
      .set("strides", Ints{1, 1})
      .set("paddings", Ints{0, 0})
      .set("global_pooling", false)
      .set("adaptive", true)
      .set("exclusive", true)
      .set("ceil_mode", false)
      .set("padding_algorithm", "EXPLICIT")
      .set("data_format", "NCHW");
}

void pool(const NodeWriter& node, const char* kind) {
  const Node& given = node.node;
  const std::vector<std::int64_t> kernel = given.get_ints("kernel_shape");
  if (kernel.size() != 2) node.refuse("only pools over two axes are written");
  if (given.outputs.size() > 1) node.refuse("its places of maxima are read");
  const std::vector<std::int64_t> dilations = given.get_ints("dilations");
  if (std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; })) {
    node.refuse("Paddle has no dilated pools");
  }
  const std::string how = given.get_string("auto_pad", "NOTSET");
  if (how == "SAME_LOWER") node.refuse("Paddle has no padding like SAME_LOWER");
  std::vector<std::int64_t> strides = given.get_ints("strides");
  if (strides.empty()) strides = {1, 1};
  std::vector<std::int64_t> pads = given.get_ints("pads");
  if (pads.empty()) pads = {0, 0, 0, 0};
  node.unary("pool2d")
      .set("pooling_type", kind)
      .set("ksize", narrow(kernel))
      .set("strides", narrow(strides))
      .set("paddings", narrow({pads[0], pads[2], pads[1], pads[3]}))
      .set("global_pooling", false)
      .set("adaptive", false)
      .set("exclusive", given.get_int("count_include_pad", 0) == 0)
      .set("ceil_mode", given.get_int("ceil_mode", 0) != 0)
      .set("padding_algorithm", how == "NOTSET"  ? "EXPLICIT"
                                : how == "VALID" ? "VALID"
                                                 : "SAME")
      .set("data_format", "NCHW");
}

/// How positions in the result map to positions in what is resized, in Paddle's two attributes.
struct Alignment {
  bool corners;
  std::int32_t mode;
};

Alignment alignment(const NodeWriter& node, bool nearest) {
  const std::string how = node.node.get_string("coordinate_transformation_mode", "half_pixel");
  if (how == "align_corners") return {true, 1};
  if (how == "asymmetric" && nearest && node.node.get_string("nearest_mode", "") == "floor") {
    return {false, 1};
  }
  if (nearest) node.refuse("Paddle resizes to the nearest with asymmetric positions, rounded down");
  if (how == "asymmetric") return {false, 1};
  if (how == "half_pixel" || how == "pytorch_half_pixel") return {false, 0};
  node.refuse(format("Paddle has no positions like {}", how));
}

void resize(const NodeWriter& node) {
  const std::string mode = node.node.get_string("mode", "nearest");
  const bool nearest = mode == "nearest";
  if (node.rank(0) != 4 || (!nearest && mode != "linear")) {
    node.refuse("only images are resized, to the nearest or bilinearly");
  }
  const Alignment align = alignment(node, nearest);
  const std::size_t scales_input = node.opset < 11 ? 1 : 2;
  Op op = node.unary(nearest ? "nearest_interp_v2" : "bilinear_interp_v2");
  op.set("align_corners", align.corners)
      .set("align_mode", align.mode)
      .set("interp_method", nearest ? "nearest" : "bilinear")
      .set("data_layout", "NCHW");
  const Tensor* scales = node.has(scales_input) ? node.constant(scales_input) : nullptr;
  if (scales != nullptr && scales->size() == 4) {
    const std::vector<float> factors = to_float(*scales);
    op.set("scale", std::vector<float>{factors[2], factors[3]}).set("out_h", -1).set("out_w", -1);
    return;
  }
  const auto sizes = node.ints("sizes", 3);
  if (!sizes || sizes->size() != 4) node.refuse("its size is computed while it runs");
  op.set("scale", std::vector<float>{})
      .set("out_h", static_cast<std::int32_t>((*sizes)[2]))
      .set("out_w", static_cast<std::int32_t>((*sizes)[3]));
}

}  // namespace

std::vector<WriteRow> pool_rows() {
  return {
      {"MaxPool", [](const NodeWriter& node) { pool(node, "max"); }},
      {"AveragePool", [](const NodeWriter& node) { pool(node, "avg"); }},
      {"GlobalMaxPool", [](const NodeWriter& node) { global_pool(node, "max"); }},
      {"GlobalAveragePool", [](const NodeWriter& node) { global_pool(node, "avg"); }},
      {"Resize", resize},
  };
}

}  // namespace quench::paddle::write
