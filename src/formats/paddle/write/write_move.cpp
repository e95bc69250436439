// SPDX-License-Identifier: Apache-2.0
// Data that is moved, not changed: shapes, orders, parts, padding.
#include <algorithm>
#include <numeric>

#include "formats/paddle/types.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// Operators of the second version say what the shape was, for training.
Op viewing(const NodeWriter& node, const char* type) {
  Op op = node.unary(type);
  op.out("XShape", node.between("old_shape"));
  return op;
}

/// A shape that is computed: Paddle wants it as 32-bit integers.
std::string as_int32(const NodeWriter& node, std::size_t input) {
  const std::string narrow_shape = node.between("shape");
  node.op("cast")
      .in("X", node.in(input))
      .out("Out", narrow_shape)
      .set("in_dtype", type_row(DType::Int64)->number)
      .set("out_dtype", type_row(DType::Int32)->number);
  return narrow_shape;
}

/// What is known of a shape that is computed, -1 for the rest. Paddle's oneDNN passes take it for
/// the shape where at most one is not known, and fail where there is none.
Ints known_sizes(const NodeWriter& node) {
  const auto& shape = node.graph()[node.node.outputs[0]].type.shape;
  if (!shape) return {-1, -1};
  Ints sizes;
  for (const Dim& dim : *shape) sizes.push_back(dim.known() ? narrow({dim.value})[0] : -1);
  return sizes;
}

void reshape(const NodeWriter& node) {
  if (node.constant(1) != nullptr || node.node.find("shape") != nullptr) {
    if (node.node.get_int("allowzero", 0) != 0) node.refuse("its shape may hold zeros");
    viewing(node, "reshape2").set("shape", narrow(*node.ints("shape", 1)));
    return;
  }
  const std::string shape = as_int32(node, 1);
  viewing(node, "reshape2").in("Shape", shape).set("shape", known_sizes(node));
}

void transpose(const NodeWriter& node) {
  std::vector<std::int64_t> perm = node.node.get_ints("perm");
  if (perm.empty()) {
    perm.resize(static_cast<std::size_t>(node.rank(0)));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  viewing(node, "transpose2").set("axis", narrow(perm));
}

void with_axes(const NodeWriter& node, const char* type) {
  viewing(node, type)
      .set("axes", narrow(node.ints("axes", 1).value_or(std::vector<std::int64_t>{})));
}

/// To a matrix. Paddle flattens a range of axes, of which there must be one on each side.
void flatten(const NodeWriter& node) {
  const std::int64_t rank = node.rank(0);
  std::int64_t axis = node.node.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis == 1 && rank >= 2) {
    viewing(node, "flatten_contiguous_range").set("start_axis", 1).set("stop_axis", -1);
    return;
  }
  if (axis == 0) {
    viewing(node, "reshape2").set("shape", Ints{1, -1});
    return;
  }
  const auto shape = node.type(0).static_shape();
  if (!shape) node.refuse("what it flattens has an open shape and its axis is not 1");
  const std::int64_t rows =
      std::accumulate(shape->begin(), shape->begin() + axis, std::int64_t{1}, std::multiplies<>());
  viewing(node, "reshape2").set("shape", narrow({rows, -1}));
}

void concat(const NodeWriter& node) {
  Names parts;
  for (std::size_t i = 0; i < node.node.inputs.size(); ++i) parts.push_back(node.in(i));
  node.op("concat")
      .in("X", parts)
      .out("Out", node.out())
      .set("axis", static_cast<std::int32_t>(node.node.get_int("axis", 0)));
}

void split(const NodeWriter& node) {
  Names parts;
  for (std::size_t i = 0; i < node.node.outputs.size(); ++i) parts.push_back(node.out(i));
  const auto sections = node.ints("split", 1);
  node.op("split")
      .in("X", node.in())
      .out("Out", parts)
      .set("axis", static_cast<std::int32_t>(node.node.get_int("axis", 0)))
      .set("sections", sections ? narrow(*sections) : Ints{})
      .set("num", sections ? 0 : static_cast<std::int32_t>(parts.size()));
}

/// Whether starts or ends come from another operator.
bool is_computed(const NodeWriter& node) {
  const auto computed = [&](std::size_t input) {
    return node.has(input) && node.constant(input) == nullptr;
  };
  return computed(1) || computed(2);
}

/// Both as tensors; the attributes say that they are.
void computed_slice(const NodeWriter& node) {
  const auto axes = node.ints("axes", 3);
  const auto steps = node.ints("steps", 4);
  if (!axes) node.refuse("its axes are missing");
  if (steps && std::ranges::any_of(*steps, [](std::int64_t step) { return step != 1; })) {
    node.refuse("its starts are computed while it runs, and it takes steps");
  }
  std::vector<std::int64_t> at = *axes;
  for (std::int64_t& axis : at) axis += axis < 0 ? node.rank(0) : 0;
  const Ints unknown(at.size(), -1);
  node.op("slice")
      .in("Input", node.in())
      .in("StartsTensor", node.in(1))
      .in("EndsTensor", node.in(2))
      .out("Out", node.out())
      .set("axes", narrow(at))
      .set("starts", unknown)
      .set("ends", unknown)
      .set("infer_flags", unknown)
      .set("decrease_axis", Ints{});
}

void slice(const NodeWriter& node) {
  if (is_computed(node)) {
    computed_slice(node);
    return;
  }
  const auto starts = node.ints("starts", 1);
  const auto ends = node.ints("ends", 2);
  const auto steps = node.ints("steps", 4);
  if (!starts || !ends) node.refuse("its ends are missing");
  auto axes = node.ints("axes", 3);
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  for (std::int64_t& axis : *axes) axis += axis < 0 ? node.rank(0) : 0;
  const bool plain =
      !steps || std::ranges::all_of(*steps, [](std::int64_t step) { return step == 1; });
  Op op = node.op(plain ? "slice" : "strided_slice");
  op.in("Input", node.in())
      .out("Out", node.out())
      .set("axes", narrow(*axes))
      .set("starts", narrow(*starts))
      .set("ends", narrow(*ends))
      .set("infer_flags", Ints(axes->size(), 1))
      .set("decrease_axis", Ints{});
  if (!plain) op.set("strides", narrow(*steps));
}

/// As a product with ones of a computed shape: Paddle's own operator stretches one of the two only.
void computed_expand(const NodeWriter& node) {
  const TypeRow* row = type_row(node.type(0).dtype);
  if (row == nullptr || row->dtype == DType::Bool)
    node.refuse("its shape is computed while it runs");
  const std::string ones = node.between("ones");
  node.op("fill_constant")
      .in("ShapeTensor", node.in(1))
      .out("Out", ones)
      .set("shape", std::vector<std::int64_t>())
      .set("value", 1.0F)
      .set("str_value", "1")
      .set("dtype", row->number);
  node.op("elementwise_mul")
      .in("X", node.in())
      .in("Y", ones)
      .out("Out", node.out())
      .set("axis", -1);
}

/// A one in ONNX's shape leaves the axis as it is, as -1 does in Paddle's.
void expand(const NodeWriter& node) {
  if (node.has(1) && node.constant(1) == nullptr) {
    computed_expand(node);
    return;
  }
  auto shape = node.ints("shape", 1);
  if (!shape) node.refuse("its shape is missing");
  std::ranges::replace(*shape, 1, -1);
  const std::int64_t longer = static_cast<std::int64_t>(shape->size()) - node.rank(0);
  if (longer < 0) shape->insert(shape->begin(), static_cast<std::size_t>(-longer), -1);
  for (std::int64_t i = 0; i < longer; ++i) {
    auto& size = (*shape)[static_cast<std::size_t>(i)];
    if (size == -1) size = 1;
  }
  node.unary("expand_v2").set("shape", narrow(*shape));
}

void tile(const NodeWriter& node) {
  const auto repeats = node.ints("repeats", 1);
  if (!repeats) node.refuse("its repeats are missing");
  node.unary("tile").set("repeat_times", narrow(*repeats));
}

/// ONNX has all beginnings and then all ends.
void pad(const NodeWriter& node) {
  const auto pads = node.ints("pads", 1);
  if (!pads || node.has(3)) node.refuse("its axes or pads are not plain");
  const std::string mode = node.node.get_string("mode", "constant");
  const std::size_t rank = pads->size() / 2;
  std::vector<std::int64_t> pairs;
  for (std::size_t i = 0; i < rank; ++i) {
    pairs.push_back((*pads)[i]);
    pairs.push_back((*pads)[i + rank]);
  }
  if (mode == "constant") {
    const float value = node.opset < 11 ? node.node.get_float("value", 0.0F)
                        : node.has(2)   ? node.number(2)
                                        : 0.0F;
    node.unary("pad").set("paddings", narrow(pairs)).set("pad_value", value);
    return;
  }
  const bool image = rank == 4 && std::ranges::all_of(std::span(pairs).first(4),
                                                      [](std::int64_t p) { return p == 0; });
  if (!image) node.refuse("Paddle pads by reflection along the last two of four axes only");
  node.unary("pad2d")
      .set("paddings", narrow({pairs[4], pairs[5], pairs[6], pairs[7]}))
      .set("mode", mode)
      .set("data_format", "NCHW");
}

void depth_to_space(const NodeWriter& node) {
  if (node.node.get_string("mode", "DCR") != "CRD") {
    node.refuse("Paddle takes the channels in the order CRD only");
  }
  node.unary("pixel_shuffle")
      .set("upscale_factor", static_cast<std::int32_t>(node.node.get_int("blocksize", 1)))
      .set("data_format", "NCHW");
}

void trilu(const NodeWriter& node) {
  const std::int64_t diagonal = node.has(1) ? (*node.ints("k", 1))[0] : 0;
  node.unary("tril_triu")
      .set("lower", node.node.get_int("upper", 1) == 0)
      .set("diagonal", static_cast<std::int32_t>(diagonal));
}

}  // namespace

std::vector<WriteRow> move_rows() {
  return {
      {"Reshape", reshape},
      {"Transpose", transpose},
      {"Squeeze", [](const NodeWriter& node) { with_axes(node, "squeeze2"); }},
      {"Unsqueeze", [](const NodeWriter& node) { with_axes(node, "unsqueeze2"); }},
      {"Flatten", flatten},
      {"Concat", concat},
      {"Split", split},
      {"Slice", slice},
      {"Expand", expand},
      {"Tile", tile},
      {"Pad", pad},
      {"DepthToSpace", depth_to_space},
      {"Trilu", trilu},
  };
}

}  // namespace quench::paddle::write
