// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, as TFLite's. Their results have the scales of what they read.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite::write {
namespace {

/// What a node that moves elements reads: integers where it does, in ONNX or between Q/DQ.
struct Moved {
  Result result;
  ValueId from;
};

Moved moved(Writer& writer, const Node& node) {
  Result result = writer.result_of(node, {node.inputs[0]}, false);
  const ValueId from = writer.source(node.inputs[0], result.integers);
  return {result, from};
}

void write_reshape(Writer& writer, const Node& node) {
  const Moved move = moved(writer, node);
  const Shape to = writer.shape(move.result.value);
  const Shape in = writer.shape(move.from);
  // Where height and width are one, both layouts lie alike in memory.
  const bool flat =
      in.size() < 3 || std::all_of(in.begin() + 2, in.end(), [](auto dim) { return dim == 1; });
  const Layout layout = flat ? writer.layout_of(move.from) : Layout::First;
  const int x = writer.tensor(move.from, layout);
  writer.add("RESHAPE", {x, writer.add_ints(node.name + "/shape", to)}, move.result, Layout::First,
             {{"shape", Ints(to)}}, &writer.quantization(move.from));
}

void write_transpose(Writer& writer, const Node& node) {
  const Moved move = moved(writer, node);
  Ints perm = node.get_ints("perm");
  const std::int64_t rank = writer.rank(move.from);
  if (perm.empty()) {
    perm = order_of(Layout::Last, rank);
    std::ranges::reverse(perm);
  }
  const bool same = writer.quantization(move.from) == writer.quantization(move.result.value);
  // Channels to the end of a value that is there so already, and the other way round.
  if (rank >= 3 && same && perm == order_of(Layout::First, rank)) {
    return writer.alias(move.result.value, writer.tensor(move.from, Layout::First), Layout::Last);
  }
  if (rank >= 3 && same && perm == order_back(rank)) {
    return writer.alias(move.result.value, writer.tensor(move.from, Layout::Last), Layout::First);
  }
  const int x = writer.tensor(move.from, Layout::First);
  writer.add("TRANSPOSE", {x, writer.add_ints(node.name + "/perm", perm)}, move.result,
             Layout::First, {}, &writer.quantization(move.from), 2);
}

void write_identity(Writer& writer, const Node& node) {
  const Layout layout = writer.layout_of(node.inputs[0]);
  writer.alias(node.outputs[0], writer.tensor(node.inputs[0], layout), layout);
}

void write_concat(Writer& writer, const Node& node) {
  const Result result = writer.result_of(node, node.inputs, false);
  const std::int64_t rank = writer.rank(result.value);
  const std::int64_t given = node.get_int("axis", 0);
  const std::int64_t axis = given < 0 ? given + rank : given;
  Layout layout = Layout::First;
  for (const ValueId input : node.inputs) {
    if (writer.constant(input) != nullptr || rank < 3) continue;
    if (writer.layout_of(writer.source(input, result.integers)) == Layout::Last) {
      layout = Layout::Last;
    }
  }
  std::vector<int> parts;
  for (const ValueId input : node.inputs) {
    int part = writer.tensor(writer.source(input, result.integers), layout);
    const Quantization& wanted = writer.quantization(result.value);
    if (result.integers && !(writer.item(part).quantization == wanted)) {
      TensorItem made = writer.item(part);
      made.data.reset();
      made.quantization = wanted;
      part = writer.add_between("QUANTIZE", {part}, std::move(made), {}, 2);
    }
    parts.push_back(part);
  }
  // Dimension 1 is the last of channels-last tensors; those behind it lie one further in front.
  std::int64_t along = axis;
  if (layout == Layout::Last && axis > 0) along = axis == 1 ? rank - 1 : axis - 1;
  writer.add("CONCATENATION", parts, result, layout, {{"axis", along}}, nullptr,
             result.integers ? 2 : 1);
}

void write_pad(Writer& writer, const Node& node) {
  const Moved move = moved(writer, node);
  const Tensor* given = writer.constant(node.input(1));
  const Tensor* value = writer.constant(node.input(2));
  const std::string mode = node.get_string("mode", "constant");
  const bool mirrors = mode == "reflect";
  if (given == nullptr || (!mirrors && mode != "constant") ||
      (value != nullptr && value->size() == 1 && to_float(*value)[0] != 0)) {
    fail(ErrorKind::Unsupported,
         "only padding with zeros or reflections, of known sizes, is written");
  }
  const Tensor pads = convert(*given, DType::Int64);
  const auto sizes = pads.data<std::int64_t>();
  const std::int64_t rank = writer.rank(move.from);
  const Layout layout = writer.layout_of(move.from);
  const Ints order =
      layout == Layout::Last && rank >= 3 ? order_back(rank) : order_of(Layout::Last, rank);
  std::vector<std::int32_t> pairs;
  for (const std::int64_t axis : order) {
    pairs.push_back(static_cast<std::int32_t>(sizes[static_cast<std::size_t>(axis)]));
    pairs.push_back(static_cast<std::int32_t>(sizes[static_cast<std::size_t>(axis + rank)]));
  }
  const int amounts = writer.add_constant(
      node.name + "/pads",
      Tensor::of<std::int32_t>({rank, 2}, std::span<const std::int32_t>(pairs)));
  constexpr std::int64_t kReflect = 0;
  writer.add(mirrors ? "MIRROR_PAD" : "PAD", {writer.tensor(move.from, layout), amounts},
             move.result, layout, mirrors ? Options{{"mode", kReflect}} : Options{},
             &writer.quantization(move.from), 2);
}

void write_resize(Writer& writer, const Node& node) {
  const Moved move = moved(writer, node);
  const Shape to = writer.shape(move.result.value);
  if (to.size() != 4) fail(ErrorKind::Unsupported, "only images are resized");
  const std::string mode = node.get_string("mode", "nearest");
  const std::string how = node.get_string("coordinate_transformation_mode", "half_pixel");
  const bool known = how == "half_pixel" || how == "pytorch_half_pixel" || how == "asymmetric" ||
                     how == "align_corners";
  if (!known || (mode != "nearest" && mode != "linear")) {
    fail(ErrorKind::Unsupported, "resizing by {} with {} is not written", mode, how);
  }
  const int size = writer.add_ints(node.name + "/size", {to[2], to[3]});
  writer.add(mode == "nearest" ? "RESIZE_NEAREST_NEIGHBOR" : "RESIZE_BILINEAR",
             {writer.tensor(move.from, Layout::Last), size}, move.result, Layout::Last,
             {{"align_corners", std::int64_t{how == "align_corners"}},
              {"half_pixel", std::int64_t{how.ends_with("half_pixel")}}},
             &writer.quantization(move.from), 3);
}

constexpr auto kRows = std::to_array<WriteRow>({
    {"Reshape", write_reshape},
    {"Flatten", write_reshape},
    {"Squeeze", write_reshape},
    {"Unsqueeze", write_reshape},
    {"Transpose", write_transpose},
    {"Identity", write_identity},
    {"Dropout", write_identity},
    {"Concat", write_concat},
    {"Pad", write_pad},
    {"Resize", write_resize},
});

}  // namespace

std::span<const WriteRow> move_rows() { return kRows; }

}  // namespace quench::tflite::write
