// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that cut pieces out of a tensor.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

struct Cut {
  Ints starts, ends, axes, steps;
};

/// The layout an input is at hand in.
Layout held(Op& op) { return op.translator().layout_of(op.item().inputs[0]); }

ValueId cut_out(Op& op, ValueId x, const Cut& cut, Layout layout) {
  if (cut.axes.empty()) return x;
  Ints axes;
  for (const std::int64_t axis : cut.axes) {
    axes.push_back(layout == Layout::First ? first_axis(axis, op.rank()) : axis);
  }
  return op.make().node("Slice", {x, op.make().ints(cut.starts), op.make().ints(cut.ends),
                                  op.make().ints(axes), op.make().ints(cut.steps)});
}

void read_slice(Op& op) {
  const Form form = op.form();
  const auto begins = op.ints(1);
  const auto sizes = op.ints(2);
  if (!begins || !sizes) {
    const ValueId x = op.in(0, Layout::Last, form);
    const ValueId begin = op.as_int64(1);
    if (sizes && std::ranges::count(*sizes, -1) > 0) {
      fail(ErrorKind::Unsupported, "it begins at a computed place and goes to the end");
    }
    const ValueId end = op.make().node("Add", {begin, op.as_int64(2)});
    return op.set(op.make().node("Slice", {x, begin, end}), Layout::Last, form);
  }
  if (std::ssize(*begins) != op.rank() || std::ssize(*sizes) != op.rank()) {
    fail(ErrorKind::BadModel, "it has {} begins and {} sizes for {} dimensions", begins->size(),
         sizes->size(), op.rank());
  }
  Cut cut;
  for (std::size_t i = 0; i < begins->size(); ++i) {
    const bool whole = (*begins)[i] == 0 && (*sizes)[i] == -1;
    if (whole) continue;
    cut.starts.push_back((*begins)[i]);
    cut.ends.push_back((*sizes)[i] == -1 ? kSliceEnd : (*begins)[i] + (*sizes)[i]);
    cut.axes.push_back(static_cast<std::int64_t>(i));
    cut.steps.push_back(1);
  }
  const Layout layout = held(op);
  op.set(cut_out(op, op.in(0, layout, form), cut, layout), layout, form);
}

bool bit(std::int64_t mask, std::size_t index) { return ((mask >> index) & 1) != 0; }

struct Strided {
  Cut cut;
  Ints shrunk;  ///< dimensions that vanish
};

Strided strided(Op& op, const Ints& begin, const Ints& end, const Ints& step) {
  if (begin.size() != end.size() || begin.size() != step.size() || std::ssize(begin) > op.rank()) {
    fail(ErrorKind::BadModel, "it has {} begins, {} ends and {} steps for {} dimensions",
         begin.size(), end.size(), step.size(), op.rank());
  }
  constexpr std::int64_t kFront = -kSliceEnd;
  Strided result;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (step[i] == 0) fail(ErrorKind::BadModel, "it steps by 0");
    const bool back = step[i] < 0;
    const bool shrinks = bit(op.number("shrink_mask"), i);
    const bool from_edge = bit(op.number("begin_mask"), i) && !shrinks;
    const bool to_edge = bit(op.number("end_mask"), i);
    if (from_edge && to_edge && step[i] == 1) continue;
    const std::int64_t first = begin[i];
    std::int64_t stop = to_edge ? (back ? kFront : kSliceEnd) : end[i];
    if (shrinks) stop = first == -1 ? kSliceEnd : first + 1;
    result.cut.starts.push_back(from_edge ? (back ? kSliceEnd : 0) : first);
    result.cut.ends.push_back(stop);
    result.cut.axes.push_back(axis);
    result.cut.steps.push_back(shrinks ? 1 : step[i]);
    if (shrinks) result.shrunk.push_back(axis);
  }
  return result;
}

void read_strided_slice(Op& op) {
  if (op.number("ellipsis_mask") != 0 || op.number("new_axis_mask") != 0) {
    fail(ErrorKind::Unsupported,
         "it adds dimensions or leaves out their number, which is not read");
  }
  if (op.number("offset") != 0) {
    fail(ErrorKind::Unsupported, "its ends count from its begins, which is not read");
  }
  const Form form = op.form();
  const Strided given = strided(op, op.need_ints(1), op.need_ints(2), op.need_ints(3));
  const Layout layout = given.shrunk.empty() ? held(op) : Layout::Last;
  const ValueId x = cut_out(op, op.in(0, layout, form), given.cut, layout);
  op.set(given.shrunk.empty() ? x : op.make().squeeze(x, given.shrunk), layout, form);
}

void set_parts(Op& op, std::size_t input, std::int64_t axis, const Ints& sizes) {
  const Form form = op.form(input);
  const std::int64_t rank = op.rank(input);
  const Layout layout = op.translator().layout_of(op.item().inputs[input]);
  const std::int64_t along = layout == Layout::First ? first_axis(axis, rank) : axis;
  std::vector<ValueId> inputs{op.in(input, layout, form)};
  if (!sizes.empty()) inputs.push_back(op.make().ints(sizes));
  const auto parts = op.make().nodes("Split", inputs, op.num_outputs(), {{"axis", along}});
  for (std::size_t i = 0; i < parts.size(); ++i) op.set(parts[i], layout, form, i);
}

void read_split(Op& op) {
  const std::int64_t axis = op.axis(op.need_int(0), op.rank(1));
  set_parts(op, 1, axis, {});
}

void read_split_v(Op& op) {
  const std::int64_t axis = op.axis(op.need_int(2), op.rank(0));
  Ints sizes = op.need_ints(1);
  const std::int64_t whole = op.in_item(0).shape[static_cast<std::size_t>(axis)];
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) sum += size == -1 ? 0 : size;
  for (std::int64_t& size : sizes) {
    if (size == -1 && whole >= sum) size = whole - sum;
  }
  set_parts(op, 0, axis, sizes);
}

void read_unpack(Op& op) {
  const Form form = op.form();
  const std::int64_t axis = op.axis(op.number("axis"), op.rank());
  const ValueId x = op.in(0, Layout::Last, form);
  for (std::size_t i = 0; i < op.num_outputs(); ++i) {
    const ValueId index = op.make().scalar(static_cast<double>(i), DType::Int64);
    op.set(op.make().node("Gather", {x, index}, {{"axis", axis}}), Layout::Last, form, i);
  }
}

void read_reverse(Op& op) {
  const Form form = op.form();
  const Layout layout = held(op);
  Cut cut;
  for (const std::int64_t axis : op.need_ints(1)) {
    cut.starts.push_back(kSliceEnd);
    cut.ends.push_back(-kSliceEnd);
    cut.axes.push_back(op.axis(axis, op.rank()));
    cut.steps.push_back(-1);
  }
  op.set(cut_out(op, op.in(0, layout, form), cut, layout), layout, form);
}

constexpr auto kRows = std::to_array<OpRow>({
    {"SLICE", 0, "", read_slice},
    {"STRIDED_SLICE", 32,
     "begin_mask:i end_mask:i ellipsis_mask:i new_axis_mask:i shrink_mask:i offset:t",
     read_strided_slice},
    {"SPLIT", 0, "", read_split},
    {"SPLIT_V", 0, "", read_split_v},
    {"UNPACK", 64, "num:i axis:i", read_unpack},
    {"REVERSE_V2", 0, "", read_reverse},
});

}  // namespace

std::span<const OpRow> slice_rows() { return kRows; }

}  // namespace quench::tflite
