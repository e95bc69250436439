// SPDX-License-Identifier: Apache-2.0
// Paddle's operators that move elements and change shapes.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

/// A constant of another shape stays a constant, so that a bias is still seen as one.
bool set_reshaped(Op& op, std::string_view output, const Tensor* tensor, const Shape& shape) {
  if (tensor == nullptr || num_elements(shape) != tensor->size()) return false;
  op.set(output, op.constant(tensor->reshaped(shape)));
  return true;
}

void read_reshape(Op& op) {
  const IntList shape = op.list("shape");
  if (!shape.computed() && set_reshaped(op, "Out", op.constant_of(op.in("X")), shape.numbers)) {
    return;
  }
  op.set("Out", op.node("Reshape", {op.in("X"), op.as_value(shape)}));
}

void read_transpose(Op& op) { op.set("Out", op.transpose(op.in("X"), op.integers("axis"))); }

void read_squeeze(Op& op) {
  const Ints axes = op.numbers("axes");
  if (axes.empty()) {
    op.set("Out", op.node("Squeeze", {op.in("X")}));
    return;
  }
  // Paddle passes over a listed dimension that is not 1.
  const auto shape = op.shape("X");
  Ints kept;
  for (const std::int64_t axis : axes) {
    const std::int64_t at = shape && axis < 0 ? axis + std::ssize(*shape) : axis;
    const bool known = shape && at >= 0 && at < std::ssize(*shape);
    if (!known || (*shape)[static_cast<std::size_t>(at)] < 2) kept.push_back(axis);
  }
  op.set("Out", kept.empty() ? op.in("X") : op.squeeze(op.in("X"), kept));
}

void read_unsqueeze(Op& op) {
  const IntList axes = op.list("axes");
  const Tensor* tensor = op.constant_of(op.in("X"));
  const auto declared = op.shape("Out");
  if (!axes.computed() && declared && set_reshaped(op, "Out", tensor, *declared)) return;
  op.set("Out", op.node("Unsqueeze", {op.in("X"), op.as_value(axes)}));
}

void read_flatten_range(Op& op) {
  const std::int64_t rank = op.need_rank("X");
  std::int64_t start = op.integer("start_axis");
  std::int64_t stop = op.integer("stop_axis");
  if (start < 0) start += rank;
  if (stop < 0) stop += rank;
  if (start < 0 || stop < start || stop >= std::max<std::int64_t>(rank, 1)) {
    fail(ErrorKind::BadModel, "it flattens dimensions {} to {} of {}", start, stop, rank);
  }
  const ValueId x = op.in("X");
  if (start == 1 && stop == rank - 1) {
    op.set("Out", op.node("Flatten", {x}, {{"axis", std::int64_t{1}}}));
    return;
  }
  if (stop == rank - 1 || rank == 0) {
    Ints shape(static_cast<std::size_t>(start), 0);
    shape.push_back(-1);
    op.set("Out", op.reshape(x, shape));
    return;
  }
  const ValueId sizes = op.sizes(x);
  std::vector<ValueId> parts;
  if (start > 0) parts.push_back(op.slice(sizes, 0, 0, start));
  parts.push_back(op.ints({-1}));
  parts.push_back(op.slice(sizes, 0, stop + 1, kEnd));
  const ValueId shape = op.node("Concat", parts, {{"axis", std::int64_t{0}}});
  op.set("Out", op.node("Reshape", {x, shape}));
}

void read_flatten(Op& op) {
  op.set("Out", op.node("Flatten", {op.in("X")}, {{"axis", op.integer("axis")}}));
}

/// -1 keeps a dimension, which a 1 does in ONNX.
void read_expand(Op& op) {
  IntList shape = op.list("shape");
  ValueId wanted = shape.value;
  if (shape.computed()) {
    const ValueId ones = op.ints({1});
    wanted = op.node("Max", {wanted, ones});
  } else {
    std::ranges::replace(shape.numbers, std::int64_t{-1}, std::int64_t{1});
    wanted = op.ints(shape.numbers);
  }
  op.set("Out", op.node("Expand", {op.in("X"), wanted}));
}

void read_expand_as(Op& op) {
  const ValueId shape = op.has("Y") ? op.sizes(op.in("Y")) : op.ints(op.integers("target_shape"));
  op.set("Out", op.node("Expand", {op.in("X"), shape}));
}

/// Repeats that are computed, with ones for the dimensions before them.
ValueId for_all_dimensions(Op& op, ValueId repeats) {
  const auto rank = op.rank("X");
  const auto given = op.shape(op.has("RepeatTimes") ? "RepeatTimes" : "repeat_times");
  const std::int64_t number = given && given->size() == 1 && (*given)[0] >= 0
                                  ? (*given)[0]
                                  : std::ssize(op.names("repeat_times_tensor"));
  const std::int64_t missing = rank && number > 0 ? *rank - number : 0;
  if (missing <= 0) return repeats;
  const ValueId ones = op.ints(Ints(static_cast<std::size_t>(missing), 1));
  return op.node("Concat", {ones, repeats}, {{"axis", std::int64_t{0}}});
}

void read_tile(Op& op) {
  const IntList repeats = op.list("repeat_times");
  ValueId x = op.in("X");
  if (repeats.computed()) {
    op.set("Out", op.node("Tile", {x, for_all_dimensions(op, repeats.value)}));
    return;
  }
  Ints numbers = repeats.numbers;
  const std::int64_t rank = op.rank("X").value_or(std::ssize(numbers));
  const std::int64_t missing = rank - std::ssize(numbers);
  if (missing > 0) numbers.insert(numbers.begin(), static_cast<std::size_t>(missing), 1);
  if (missing < 0) {
    Ints axes;
    for (std::int64_t i = 0; i < -missing; ++i) axes.push_back(i);
    x = op.unsqueeze(x, axes);
  }
  op.set("Out", op.node("Tile", {x, op.ints(numbers)}));
}

void read_cast(Op& op) {
  const DType to = dtype_of(static_cast<std::int32_t>(op.integer("out_dtype")));
  op.set("Out", op.node("Cast", {op.in("X")}, {{"to", static_cast<std::int64_t>(to)}}));
}

void read_concat(Op& op) {
  op.set("Out", op.node("Concat", op.ins("X"), {{"axis", op.single("axis")}}));
}

void read_stack(Op& op) {
  const std::int64_t axis = op.integer("axis");
  std::vector<ValueId> parts;
  for (const ValueId part : op.ins("X")) parts.push_back(op.unsqueeze(part, {axis}));
  op.set("Y", op.node("Concat", parts, {{"axis", axis}}));
}

/// The sizes of the parts; a -1 stands for the rest.
Ints filled(Op& op, Ints sections, std::int64_t axis) {
  const auto rest = std::ranges::find(sections, -1);
  if (rest == sections.end()) return sections;
  const auto shape = op.shape("X");
  const std::int64_t at = shape && axis < 0 ? axis + std::ssize(*shape) : axis;
  std::int64_t left =
      shape && at >= 0 && at < std::ssize(*shape) ? (*shape)[static_cast<std::size_t>(at)] : -1;
  if (left < 0) {
    fail(ErrorKind::Unsupported, "one of its sections is the rest of a dimension of open size");
  }
  for (const std::int64_t size : sections) left -= size == -1 ? 0 : size;
  *rest = left;
  return sections;
}

void read_split(Op& op) {
  const std::int64_t axis = op.single("axis");
  const Ints sections = filled(op, op.numbers("sections"), axis);
  const std::size_t count = op.num_outputs("Out");
  std::vector<ValueId> inputs{op.in("X")};
  if (!sections.empty()) inputs.push_back(op.ints(sections));
  Attributes attributes{{"axis", axis}};
  constexpr int kNamesCount = 18;
  if (sections.empty() && op.opset() >= kNamesCount) {
    attributes.emplace_back("num_outputs", static_cast<std::int64_t>(count));
  }
  const auto parts = op.nodes("Split", inputs, count, attributes);
  for (std::size_t i = 0; i < parts.size(); ++i) op.set("Out", parts[i], i);
}

/// Slices of size 1, each without the dimension.
void unstack(Op& op, std::string_view output) {
  const std::int64_t axis = op.integer("axis");
  const std::size_t count = op.num_outputs(output);
  const std::vector<std::int64_t> ones(count, 1);
  const auto parts = op.nodes("Split", {op.in("X"), op.ints(ones)}, count, {{"axis", axis}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    op.set(output, op.squeeze(parts[i], {axis}), i);
  }
}

void read_unstack(Op& op) { unstack(op, "Y"); }
void read_unbind(Op& op) { unstack(op, "Out"); }

void read_flip(Op& op) {
  Ints axes = op.integers("axis");
  const Ints starts(axes.size(), -1);
  const Ints ends(axes.size(), -kEnd);
  op.set("Out", op.node("Slice", {op.in("X"), op.ints(starts), op.ints(ends), op.ints(axes),
                                  op.ints(Ints(axes.size(), -1))}));
}

/// The last `shift` elements come first.
void read_roll(Op& op) {
  Ints axes = op.integers("axis");
  const Ints shifts = op.numbers("shifts");
  ValueId x = op.in("X");
  const bool flat = axes.empty();
  if (flat) {
    axes = {0};
    x = op.reshape(x, {-1});
  }
  if (shifts.size() != axes.size()) fail(ErrorKind::BadModel, "its shifts and axes differ");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shifts[i] == 0) continue;
    const ValueId behind = op.slice(x, axes[i], -shifts[i], kEnd);
    const ValueId before = op.slice(x, axes[i], 0, -shifts[i]);
    x = op.node("Concat", {behind, before}, {{"axis", axes[i]}});
  }
  op.set("Out", flat ? op.node("Reshape", {x, op.sizes(op.in("X"))}) : x);
}

void read_triangle(Op& op, bool lower) {
  const ValueId k = op.constant(Tensor::scalar(op.integer("diagonal")));
  op.set("Out", op.node("Trilu", {op.in("X"), k}, {{"upper", std::int64_t{!lower}}}));
}

void read_tril_triu(Op& op) { read_triangle(op, op.flag("lower")); }
void read_tril(Op& op) { read_triangle(op, true); }
void read_triu(Op& op) { read_triangle(op, false); }

/// Each input along its own dimension, stretched over the others.
void read_meshgrid(Op& op) {
  const std::vector<ValueId> inputs = op.ins("X");
  std::vector<ValueId> sizes;
  for (const ValueId each : inputs) sizes.push_back(op.sizes(op.reshape(each, {-1})));
  const ValueId shape = op.node("Concat", sizes, {{"axis", std::int64_t{0}}});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Ints own(inputs.size(), 1);
    own[i] = -1;
    op.set("Out", op.node("Expand", {op.reshape(inputs[i], own), shape}), i);
  }
}

constexpr auto kRows = std::to_array<OpRow>({
    {"reshape2", "reshape", "X shape:ShapeTensor,Shape", "Out XShape", "shape=", read_reshape},
    {"reshape", "-", "X shape:ShapeTensor,Shape", "Out", "shape=", read_reshape},
    {"transpose2", "transpose", "X", "Out XShape", "axis|perm", read_transpose},
    {"transpose", "-", "X", "Out", "axis", read_transpose},
    {"squeeze2", "squeeze", "X axes:", "Out XShape", "axes|axis=", read_squeeze},
    {"squeeze", "-", "X axes:", "Out", "axes=", read_squeeze},
    {"unsqueeze2", "unsqueeze", "X axes:AxesTensorList,AxesTensor", "Out XShape",
     "axes|axis=", read_unsqueeze},
    {"unsqueeze", "-", "X axes:", "Out", "axes=", read_unsqueeze},
    {"flatten_contiguous_range", "flatten", "X", "Out XShape", "start_axis=1 stop_axis=1",
     read_flatten_range},
    {"flatten2", "-", "X", "Out XShape", "axis=1", read_flatten},
    {"flatten", "-", "X", "Out", "axis=1", read_flatten},
    {"expand_v2", "expand", "X shape:expand_shapes_tensor,Shape", "Out", "shape=", read_expand},
    {"expand_as_v2", "expand_as", "X Y", "Out", "target_shape=", read_expand_as},
    {"tile", "", "X repeat_times:repeat_times_tensor,RepeatTimes", "Out",
     "repeat_times=", read_tile},
    {"expand", "-", "X repeat_times:expand_times_tensor,ExpandTimes", "Out",
     "repeat_times|expand_times=", read_tile},
    {"cast", "", "X", "Out", "out_dtype|dtype", read_cast},
    {"concat", "", "X axis:AxisTensor", "Out", "axis=0", read_concat},
    {"stack", "", "X", "Y", "axis=0", read_stack},
    {"split", "split", "X sections:SectionsTensorList axis:AxisTensor", "Out",
     "sections= axis=0 num=0", read_split},
    {"split_with_num", "", "X axis:AxisTensor", "Out", "sections= axis=0 num=0", read_split},
    {"unstack", "", "X", "Y", "axis=0", read_unstack},
    {"unbind", "", "X", "Out", "axis=0", read_unbind},
    {"flip", "", "X", "Out", "axis", read_flip},
    {"roll", "", "X shifts:ShiftsTensor", "Out", "shifts= axis=", read_roll},
    {"tril_triu", "-", "X", "Out", "diagonal=0 lower=true", read_tril_triu, 14},
    {"tril", "", "X", "Out", "diagonal=0", read_tril, 14},
    {"triu", "", "X", "Out", "diagonal=0", read_triu, 14},
    {"meshgrid", "", "X", "Out", "", read_meshgrid},
});

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace quench::paddle
