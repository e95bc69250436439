// SPDX-License-Identifier: Apache-2.0
// Operators that pick some of the elements, as TFLite's.
#include <algorithm>
#include <array>
#include <limits>

#include "base/format.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

/// What is taken of one dimension.
struct Cut {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

/// Numbers that old versions have as an attribute and newer ones as an input; nothing where they
/// are computed.
std::optional<Ints> numbers(const Writer& writer, const Node& node, const char* attribute,
                            std::size_t input) {
  if (node.find(attribute) != nullptr) return node.get_ints(attribute);
  if (node.input(input) == kNoValue) return Ints();
  const Tensor* given = writer.constant(node.input(input));
  if (given == nullptr) return std::nullopt;
  const Tensor wide = convert(*given, DType::Int64);
  const auto data = wide.data<std::int64_t>();
  return Ints(data.begin(), data.end());
}

/// Adds the operator that takes these cuts of the dimensions, in the order that ONNX has them.
void add_cuts(Writer& writer, const Node& node, const std::vector<Cut>& cuts) {
  const Result result = writer.result_of(node, {node.inputs[0]}, false);
  const ValueId from = writer.source(node.inputs[0], result.integers);
  const auto rank = static_cast<std::int64_t>(cuts.size());
  const Layout layout = rank < 3 ? Layout::First : writer.layout_of(from);
  const Ints order = layout == Layout::Last ? order_back(rank) : order_of(Layout::Last, rank);
  Ints begin, end, size, step;
  for (const std::int64_t axis : order) {
    const Cut& cut = cuts[static_cast<std::size_t>(axis)];
    begin.push_back(cut.begin);
    end.push_back(cut.end);
    step.push_back(cut.step);
    size.push_back(cut.end < 0 ? -1 : cut.end - cut.begin);
  }
  const std::string& name = writer.graph()[node.outputs[0]].name;
  const int x = writer.tensor(from, layout);
  const int first = writer.add_ints(name + "/begin", begin);
  if (std::ranges::all_of(step, [](auto each) { return each == 1; })) {
    return writer.add("SLICE", {x, first, writer.add_ints(name + "/size", size)}, result, layout,
                      {}, &writer.quantization(from), 2);
  }
  std::int64_t open = 0;  // dimensions that are taken to their end
  for (std::size_t i = 0; i < end.size(); ++i) {
    if (end[i] >= 0) continue;
    open |= std::int64_t{1} << i;
    end[i] = 0;
  }
  writer.add("STRIDED_SLICE",
             {x, first, writer.add_ints(name + "/end", end), writer.add_ints(name + "/step", step)},
             result, layout, {{"begin_mask", std::int64_t{0}}, {"end_mask", open}},
             &writer.quantization(from), 2);
}

/// Every dimension whole; -1 is the end of one that is open.
std::vector<Cut> whole(const Shape& shape) {
  std::vector<Cut> cuts;
  for (const std::int64_t dim : shape) cuts.push_back({.end = dim});
  return cuts;
}

std::size_t axis_in(std::int64_t axis, const std::vector<Cut>& cuts) {
  const std::int64_t rank = std::ssize(cuts);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    fail(ErrorKind::BadModel, "there is no dimension {} among {}", axis, rank);
  }
  return static_cast<std::size_t>(axis);
}

void write_slice(Writer& writer, const Node& node) {
  const auto starts = numbers(writer, node, "starts", 1);
  const auto ends = numbers(writer, node, "ends", 2);
  auto axes = numbers(writer, node, "axes", 3);
  auto steps = numbers(writer, node, "steps", 4);
  if (!starts || !ends || !axes || !steps || starts->size() != ends->size()) {
    fail(ErrorKind::Unsupported, "only slices with constant bounds are written");
  }
  std::vector<Cut> cuts = whole(writer.shape(node.inputs[0]));
  if (axes->empty()) {
    for (std::size_t i = 0; i < starts->size(); ++i) {
      axes->push_back(static_cast<std::int64_t>(i));
    }
  }
  steps->resize(starts->size(), 1);
  if (axes->size() != starts->size()) fail(ErrorKind::BadModel, "its bounds are not one an axis");
  for (std::size_t i = 0; i < starts->size(); ++i) {
    Cut& cut = cuts[axis_in((*axes)[i], cuts)];
    const std::int64_t dim = cut.end;
    const bool all = (*starts)[i] == 0 && (*ends)[i] >= std::numeric_limits<std::int32_t>::max();
    if (all && (*steps)[i] == 1) continue;
    if (dim < 0 || (*steps)[i] < 1) {
      fail(ErrorKind::Unsupported, "slices of an open dimension, or backwards, are not written");
    }
    const auto within = [dim](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + dim : at, 0, dim);
    };
    cut = {within((*starts)[i]), within((*ends)[i]), (*steps)[i]};
    cut.end = std::max(cut.begin, cut.end);
  }
  add_cuts(writer, node, cuts);
}

/// Each part is a slice of its own.
void write_split(Writer& writer, const Node& node) {
  std::vector<Cut> cuts = whole(writer.shape(node.inputs[0]));
  const std::size_t axis = axis_in(node.get_int("axis", 0), cuts);
  std::int64_t begin = 0;
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) fail(ErrorKind::Unsupported, "a part of it is left out");
    const std::int64_t size = writer.shape(output)[axis];
    if (size < 0) fail(ErrorKind::Unsupported, "an open dimension is not split");
    Node part = node;
    part.outputs = {output};
    cuts[axis] = {.begin = begin, .end = begin + size};
    add_cuts(writer, part, cuts);
    begin += size;
  }
}

void write_gather(Writer& writer, const Node& node) {
  const Result result = writer.result_of(node, {node.inputs[0]}, false);
  const ValueId from = writer.source(node.inputs[0], result.integers);
  const std::int64_t rank = writer.rank(from);
  const std::int64_t given = node.get_int("axis", 0);
  const std::int64_t axis = given < 0 ? given + rank : given;
  int indices = -1;
  if (const Tensor* known = writer.constant(node.inputs[1])) {
    const std::int64_t dim = writer.shape(from)[static_cast<std::size_t>(axis)];
    Tensor places = convert(*known, DType::Int32);
    for (std::int32_t& each : places.mutable_data<std::int32_t>()) {
      if (each < 0 && dim < 0) fail(ErrorKind::Unsupported, "it counts from an open end");
      if (each < 0) each += static_cast<std::int32_t>(dim);
    }
    indices = writer.add_constant(writer.graph()[node.inputs[1]].name, places);
  } else {
    indices = writer.tensor(node.inputs[1], Layout::First);
  }
  writer.add("GATHER", {writer.tensor(from, Layout::First), indices}, result, Layout::First,
             {{"axis", axis}, {"batch_dims", std::int64_t{0}}}, &writer.quantization(from), 2);
}

constexpr auto kRows = std::to_array<WriteRow>({
    {"Slice", write_slice},
    {"Split", write_split},
    {"Gather", write_gather},
});

}  // namespace

std::span<const WriteRow> pick_rows() { return kRows; }

}  // namespace quench::tflite::write
