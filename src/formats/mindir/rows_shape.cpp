// SPDX-License-Identifier: Apache-2.0
// MindIR's operators that move elements: shapes, slices, tuples of tensors.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"

namespace quench::mindir {
namespace {

void read_reshape(Op& op) {
  if (const auto shape = op.ints("shape", 1)) return op.set(op.make().reshape(op.in(0), *shape));
  op.set(op.make().node("Reshape", {op.in(0), op.make().cast(op.in(1), DType::Int64)}));
}

void read_flatten(Op& op) { op.set(op.make().node("Flatten", {op.in(0)})); }
void read_transpose(Op& op) { op.set(op.make().transpose(op.in(0), op.need_ints("perm", 1))); }

void read_squeeze(Op& op) {
  const Ints axes = op.ints("axis", 1).value_or(Ints{});
  if (axes.empty()) return op.set(op.make().node("Squeeze", {op.in(0)}));
  op.set(op.make().squeeze(op.in(0), axes));
}

void read_expand_dims(Op& op) { op.set(op.make().unsqueeze(op.in(0), op.need_ints("axis", 1))); }

void read_shape(Op& op) { op.set(op.make().node("Shape", {op.in(0)})); }

void read_concat(Op& op) {
  op.set(op.make().node("Concat", op.all_in(), {{"axis", op.number("axis", 0, 1)}}));
}

void read_stack(Op& op) {
  const std::int64_t axis = op.number("axis", 0);
  std::vector<ValueId> parts;
  for (const ValueId each : op.all_in()) parts.push_back(op.make().unsqueeze(each, {axis}));
  op.set(op.make().node("Concat", parts, {{"axis", axis}}));
}

void read_split(Op& op) {
  const std::int64_t axis = op.number("axis", 0, 1);
  const Ints sizes = op.ints("size_splits").value_or(Ints{});
  const std::int64_t count = sizes.empty() ? op.number("output_num", 0, 2) : std::ssize(sizes);
  constexpr std::int64_t kMost = 1 << 16;
  if (count <= 0 || count > kMost) fail(ErrorKind::BadModel, "it makes {} tensors", count);
  std::vector<ValueId> inputs{op.in(0)};
  const bool plain =
      sizes.empty() || std::ranges::any_of(sizes, [](auto each) { return each < 0; });
  if (!plain) inputs.push_back(op.make().ints(sizes));
  op.set_all(op.make().nodes("Split", inputs, static_cast<std::size_t>(count), {{"axis", axis}}));
}

void read_unstack(Op& op) {
  const std::int64_t axis = op.number("axis", 0), count = op.number("num", 0);
  constexpr std::int64_t kMost = 1 << 16;
  if (count <= 0 || count > kMost) fail(ErrorKind::BadModel, "it makes {} tensors", count);
  std::vector<ValueId> parts;
  const ValueId x = op.in(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const ValueId index = op.make().scalar(static_cast<double>(i), DType::Int64);
    parts.push_back(op.make().node("Gather", {x, index}, {{"axis", axis}}));
  }
  op.set_all(parts);
}

void read_gather(Op& op) {
  if (op.number("batch_dims", 0, 3) != 0) {
    fail(ErrorKind::Unsupported, "it gathers batch by batch (batch_dims), which is not read");
  }
  op.set(op.make().node("Gather", {op.in(0), op.in(1)}, {{"axis", op.number("axis", 0, 2)}}));
}

bool bit(std::int64_t mask, std::size_t index) { return ((mask >> index) & 1) != 0; }

/// As Python's slices: masks say which begins and ends are left out, and which dimensions vanish.
void read_strided_slice(Op& op) {
  const Ints begin = op.need_ints("begin", 1), end = op.need_ints("end", 2);
  const Ints steps = op.ints("strides", 3).value_or(Ints(begin.size(), 1));
  const std::int64_t begins = op.number("begin_mask", 0, 4), ends = op.number("end_mask", 0, 5);
  const std::int64_t shrink = op.number("shrink_axis_mask", 0, 8);
  if (op.number("ellipsis_mask", 0, 6) != 0 || op.number("new_axis_mask", 0, 7) != 0) {
    fail(ErrorKind::Unsupported, "it adds dimensions or leaves out their number");
  }
  constexpr std::size_t kMaxRank = 8;
  if (begin.size() != end.size() || begin.size() != steps.size() || begin.size() > kMaxRank) {
    fail(ErrorKind::BadModel, "it has {} begins, {} ends and {} steps", begin.size(), end.size(),
         steps.size());
  }
  Ints from, to, axes, by, gone;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const bool back = steps[i] < 0;
    const bool vanishes = bit(shrink, i);
    if (steps[i] == 0) fail(ErrorKind::BadModel, "it steps by 0");
    if (bit(begins, i) && bit(ends, i) && steps[i] == 1 && !vanishes) continue;
    from.push_back(bit(begins, i) && !vanishes ? (back ? kSliceEnd : 0) : begin[i]);
    std::int64_t stop = bit(ends, i) ? (back ? -kSliceEnd : kSliceEnd) : end[i];
    if (vanishes) stop = begin[i] == -1 ? kSliceEnd : begin[i] + 1;
    to.push_back(stop);
    axes.push_back(static_cast<std::int64_t>(i));
    by.push_back(vanishes ? 1 : steps[i]);
    if (vanishes) gone.push_back(static_cast<std::int64_t>(i));
  }
  GraphMaker& make = op.make();
  ValueId x = op.in(0);
  if (!axes.empty()) {
    x = make.node("Slice", {x, make.ints(from), make.ints(to), make.ints(axes), make.ints(by)});
  }
  op.set(gone.empty() ? x : make.squeeze(x, gone));
}

/// Begins and sizes; -1 is all that is left.
void read_slice(Op& op) {
  const Ints begin = op.need_ints("begin", 1), size = op.need_ints("size", 2);
  Ints axes = op.ints("axes").value_or(Ints{});
  if (axes.empty()) {
    for (std::int64_t i = 0; i < std::ssize(begin); ++i) axes.push_back(i);
  }
  if (begin.size() != size.size() || axes.size() != begin.size()) {
    fail(ErrorKind::BadModel, "it has {} begins and {} sizes", begin.size(), size.size());
  }
  Ints ends;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const bool rest = size[i] < 0 || size[i] > kMost || begin[i] > kMost || begin[i] < 0;
    ends.push_back(rest ? kSliceEnd : begin[i] + size[i]);
  }
  GraphMaker& make = op.make();
  op.set(make.node("Slice", {op.in(0), make.ints(begin), make.ints(ends), make.ints(axes)}));
}

void read_tile(Op& op) {
  op.set(op.make().node("Tile", {op.in(0), op.make().ints(op.need_ints("multiples", 1))}));
}

void read_broadcast(Op& op) {
  Ints shape = op.need_ints("shape", 1);
  std::ranges::replace(shape, -1, 1);
  op.set(op.make().node("Expand", {op.in(0), op.make().ints(shape)}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Reshape", read_reshape},
    {"Flatten", read_flatten},
    {"Transpose", read_transpose},
    {"Squeeze", read_squeeze},
    {"ExpandDims", read_expand_dims},
    {"Unsqueeze", read_expand_dims},
    {"Shape", read_shape},
    {"Concat", read_concat},
    {"Stack", read_stack},
    {"Split", read_split},
    {"Unstack", read_unstack},
    {"Gather", read_gather},
    {"StridedSlice", read_strided_slice},
    {"Slice", read_slice},
    {"SliceFusion", read_slice},
    {"Tile", read_tile},
    {"TileFusion", read_tile},
    {"BroadcastTo", read_broadcast},
});

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace quench::mindir
