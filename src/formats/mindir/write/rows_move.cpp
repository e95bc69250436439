// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, as MindIR's.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/mindir/write/writer.h"

namespace quench::mindir::write {
namespace {

/// The integers of a constant input; nothing where it is left out.
std::optional<Ints> ints_of(const Writer& writer, const Node& node, std::size_t input) {
  if (node.input(input) == kNoValue) return std::nullopt;
  const Tensor* data = writer.constant(node.input(input));
  if (data == nullptr) fail(ErrorKind::Unsupported, "input {} is computed", input);
  const Tensor wide = convert(*data, DType::Int64);
  return Ints(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
}

/// To a shape that is known but for one size.
void write_reshape(Writer& writer, const Node& node) {
  const Shape to = writer.shape(node.outputs[0]);
  if (std::ranges::count(to, -1) > 1) {
    fail(ErrorKind::Unsupported, "its result has several open sizes; fix the inputs' shapes");
  }
  writer.add("Reshape", {writer.name(node.inputs[0]), writer.argument(Ints(to))}, node.outputs[0]);
}

void write_flatten(Writer& writer, const Node& node) {
  if (node.get_int("axis", 1) != 1) return write_reshape(writer, node);
  writer.add("Flatten", {writer.name(node.inputs[0])}, node.outputs[0]);
}

void write_squeeze(Writer& writer, const Node& node) {
  const auto axes = ints_of(writer, node, 1);
  writer.add("Squeeze",
             {writer.name(node.inputs[0]), writer.argument(axes ? *axes : node.get_ints("axes"))},
             node.outputs[0]);
}

void write_unsqueeze(Writer& writer, const Node& node) {
  const auto given = ints_of(writer, node, 1);
  const Ints axes = given ? *given : node.get_ints("axes");
  if (axes.size() != 1) return write_reshape(writer, node);
  writer.add("ExpandDims", {writer.name(node.inputs[0]), writer.argument(axes[0])},
             node.outputs[0]);
}

void write_transpose(Writer& writer, const Node& node) {
  Ints perm = node.get_ints("perm");
  if (perm.empty()) {
    for (std::int64_t i = writer.rank(node.inputs[0]); i-- > 0;) perm.push_back(i);
  }
  writer.add("Transpose", {writer.name(node.inputs[0]), writer.argument(perm)}, node.outputs[0]);
}

void write_alias(Writer& writer, const Node& node) {
  writer.alias(node.outputs[0], writer.name(node.inputs[0]));
}

void write_concat(Writer& writer, const Node& node) {
  std::vector<std::string> parts;
  for (const ValueId id : node.inputs) parts.push_back(writer.name(id));
  writer.add("Concat", {writer.make_tuple(parts), writer.argument(node.get_int("axis", 0))},
             node.outputs[0]);
}

/// Parts of one size are one Split; others are slices.
void write_split(Writer& writer, const Node& node) {
  const std::int64_t rank = writer.rank(node.inputs[0]);
  const std::int64_t given = node.get_int("axis", 0);
  const auto axis = static_cast<std::size_t>(given < 0 ? given + rank : given);
  const std::int64_t first = writer.known_shape(node.outputs[0])[axis];
  for (const ValueId id : node.outputs) {
    if (writer.shape(id)[axis] != first) {
      fail(ErrorKind::Unsupported, "only parts of one size are written");
    }
  }
  const std::string all =
      writer.between("Split",
                     {writer.name(node.inputs[0]), writer.argument(static_cast<std::int64_t>(axis)),
                      writer.argument(std::ssize(node.outputs))},
                     DType::Undefined, {});
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    writer.take(all, static_cast<std::int64_t>(i), node.outputs[i]);
  }
}

void write_slice(Writer& writer, const Node& node) {
  const Shape in = writer.shape(node.inputs[0]);
  const Ints starts = ints_of(writer, node, 1).value_or(node.get_ints("starts"));
  const Ints ends = ints_of(writer, node, 2).value_or(node.get_ints("ends"));
  Ints axes = ints_of(writer, node, 3).value_or(node.get_ints("axes"));
  const Ints steps = ints_of(writer, node, 4).value_or(Ints(starts.size(), 1));
  if (axes.empty()) {
    for (std::int64_t i = 0; i < std::ssize(starts); ++i) axes.push_back(i);
  }
  // What is not named stays whole, which masks say.
  std::int64_t mask = (std::int64_t{1} << in.size()) - 1, ends_mask = mask;
  Ints begin(in.size(), 0), end(in.size(), 0), by(in.size(), 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + std::ssize(in) : axes[i]);
    constexpr std::int64_t kFar = std::int64_t{1} << 31;
    begin[axis] = starts[i];
    end[axis] = ends[i];
    by[axis] = steps[i];
    if (starts[i] < kFar) mask &= ~(std::int64_t{1} << axis);
    if (std::abs(ends[i]) < kFar) ends_mask &= ~(std::int64_t{1} << axis);
    if (std::abs(ends[i]) >= kFar) end[axis] = 0;
    if (starts[i] >= kFar) begin[axis] = 0;
  }
  const auto zero = [&] { return writer.argument(std::int64_t{0}); };
  writer.add("StridedSlice",
             {writer.name(node.inputs[0]), writer.argument(begin), writer.argument(end),
              writer.argument(by), writer.argument(mask), writer.argument(ends_mask), zero(),
              zero(), zero()},
             node.outputs[0]);
}

void write_gather(Writer& writer, const Node& node) {
  writer.add("Gather",
             {writer.name(node.inputs[0]), writer.name(node.inputs[1]),
              writer.argument(node.get_int("axis", 0)), writer.argument(std::int64_t{0})},
             node.outputs[0]);
}

void write_pad(Writer& writer, const Node& node) {
  const auto given = ints_of(writer, node, 1);
  const Ints pads = given ? *given : node.get_ints("pads");
  const std::string mode = node.get_string("mode", "constant");
  const auto rank = static_cast<std::size_t>(writer.rank(node.inputs[0]));
  if (pads.size() != 2 * rank || node.input(3) != kNoValue ||
      (mode != "constant" && mode != "reflect" && mode != "edge")) {
    fail(ErrorKind::Unsupported, "padding by '{}', or along some dimensions, is not written", mode);
  }
  Ints pairs;
  for (std::size_t i = rank; i-- > 0;) pairs.insert(pairs.end(), {pads[i], pads[i + rank]});
  while (pairs.size() > 2 && pairs[pairs.size() - 1] == 0 && pairs[pairs.size() - 2] == 0) {
    pairs.resize(pairs.size() - 2);
  }
  const Tensor* value = writer.constant(node.input(2));
  const Tensor with = value == nullptr
                          ? convert(Tensor::scalar(0.0F), writer.graph()[node.inputs[0]].type.dtype)
                          : value->reshaped({});
  writer.add(
      "PadV3",
      {text("mode", mode == "edge" ? "replicate" : mode), truth("paddings_contiguous", true)},
      {writer.name(node.inputs[0]), writer.argument(pairs),
       mode == "constant" ? writer.tensor(with) : writer.nothing()},
      node.outputs[0]);
}

void write_resize(Writer& writer, const Node& node) {
  const Shape to = writer.known_shape(node.outputs[0]);
  const std::string mode = node.get_string("mode", "nearest");
  const std::string how = node.get_string("coordinate_transformation_mode", "half_pixel");
  const bool corners = how == "align_corners";
  const bool half = how == "half_pixel" || how == "pytorch_half_pixel";
  const bool nearest = mode == "nearest" && how == "asymmetric" &&
                       node.get_string("nearest_mode", "round_prefer_floor") == "floor";
  const bool linear = mode == "linear" && (corners || half || how == "asymmetric");
  if (to.size() != 4 || (!nearest && !linear)) {
    fail(ErrorKind::Unsupported, "resizing by {} with {} is not written", mode, how);
  }
  writer.add(nearest ? "ResizeNearestNeighborV2" : "ResizeBilinearV2",
             {writer.name(node.inputs[0]), writer.argument(Ints{to[2], to[3]}),
              writer.argument(corners), writer.argument(half && !nearest)},
             node.outputs[0]);
}

void write_expand(Writer& writer, const Node& node) {
  writer.add(
      "BroadcastTo",
      {writer.name(node.inputs[0]), writer.argument(Ints(writer.known_shape(node.outputs[0])))},
      node.outputs[0]);
}

void write_tile(Writer& writer, const Node& node) {
  writer.add(
      "Tile",
      {writer.name(node.inputs[0]), writer.argument(ints_of(writer, node, 1).value_or(Ints{}))},
      node.outputs[0]);
}

constexpr auto kRows = std::to_array<WriteRow>({
    {"Reshape", write_reshape},
    {"Flatten", write_flatten},
    {"Squeeze", write_squeeze},
    {"Unsqueeze", write_unsqueeze},
    {"Transpose", write_transpose},
    {"Identity", write_alias},
    {"Dropout", write_alias},
    {"Concat", write_concat},
    {"Split", write_split},
    {"Slice", write_slice},
    {"Gather", write_gather},
    {"Pad", write_pad},
    {"Resize", write_resize},
    {"Expand", write_expand},
    {"Tile", write_tile},
});

}  // namespace

std::span<const WriteRow> move_rows() { return kRows; }

}  // namespace quench::mindir::write
