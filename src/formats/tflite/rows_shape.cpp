// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that change or tell shapes.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

/// Whether only the dimensions between batch and channels are cut anew, so that channels may stay
/// first.
bool keeps_channels(const Shape& from, const Shape& to) {
  if (from.size() < 3 || to.size() < 3) return false;
  return from.front() == to.front() && from.back() == to.back() && from.back() > 0 &&
         std::all_of(to.begin() + 1, to.end(), [](auto dim) { return dim > 0; });
}

/// The shape that a Reshape to `shape`, in a layout, takes: an open batch is that of the input.
Ints target_shape(const Shape& shape, Layout layout) {
  Ints target = arranged(shape, layout);
  if (std::ranges::count(shape, -1) == 1) return target;
  if (!target.empty() && target[0] == -1) target[0] = 0;
  return target;
}

/// Any operator that keeps the elements and their order in the file's layout.
void reshape_to(Op& op, const Shape& to) {
  const Form form = op.form();
  const Shape& from = op.in_item(0).shape;
  const Layout held = op.translator().layout_of(op.item().inputs[0]);
  if (held == Layout::First && keeps_channels(from, to)) {
    const ValueId x = op.in(0, Layout::First, form);
    return op.set(op.make().reshape(x, target_shape(to, Layout::First)), Layout::First, form);
  }
  const ValueId x = op.in(0, is_same_in_memory(from) ? held : Layout::Last, form);
  // What follows a tensor that is the same in both layouts is most often a convolution.
  const bool first = to.size() >= 3 && is_same_in_memory(to);
  const Layout layout = first ? Layout::First : Layout::Last;
  op.set(op.make().reshape(x, target_shape(to, layout)), layout, form);
}

bool is_told(const Shape& shape) { return std::ranges::count(shape, -1) <= 1; }

/// The constant shape of a RESHAPE, with the batch left open where the tensor leaves it.
std::optional<Ints> given_shape(Op& op) {
  std::optional<Ints> shape = op.has(1) ? op.ints(1) : std::optional(op.numbers("shape"));
  const Shape& out = op.out_item().shape;
  if (!shape || (shape->empty() && !out.empty())) {
    return is_told(out) ? std::optional<Ints>(out) : std::nullopt;
  }
  const bool open = std::ranges::count(*shape, -1) > 0;
  if (!open && shape->size() == out.size() && std::ranges::count(out, -1) == 1) {
    *std::ranges::next(shape->begin(), std::ranges::find(out, -1) - out.begin()) = -1;
  }
  return shape;
}

void read_reshape(Op& op) {
  if (const auto shape = given_shape(op)) {
    const Shape& out = op.out_item().shape;
    // The tensor's own shape tells what -1 stands for.
    const bool fits = shape->size() == out.size() && is_told(out);
    return reshape_to(op, fits ? out : *shape);
  }
  const Form form = op.form();
  const ValueId x = op.in(0, Layout::Last, form);
  op.set(op.make().node("Reshape", {x, op.as_int64(1)}), Layout::Last, form);
}

void read_squeeze(Op& op) {
  if (is_told(op.out_item().shape)) return reshape_to(op, op.out_item().shape);
  const Form form = op.form();
  Ints axes = op.numbers("dims");
  if (axes.empty()) fail(ErrorKind::Unsupported, "it leaves out dimensions that are not known");
  op.set(op.make().squeeze(op.in(0, Layout::Last, form), axes), Layout::Last, form);
}

void read_expand_dims(Op& op) {
  if (is_told(op.out_item().shape)) return reshape_to(op, op.out_item().shape);
  const Form form = op.form();
  const std::int64_t axis = op.axis(op.need_int(1), op.rank() + 1);
  op.set(op.make().unsqueeze(op.in(0, Layout::Last, form), {axis}), Layout::Last, form);
}

/// Whether a Transpose moves nothing but dimensions of one.
bool moves_nothing(const Shape& shape, const Ints& perm) {
  std::int64_t last = -1;
  for (const std::int64_t axis : perm) {
    if (shape[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool is_identity(const Ints& perm) { return std::ranges::is_sorted(perm); }

Ints checked_perm(Op& op) {
  const Ints perm = op.need_ints(1);
  Ints sorted = perm;
  std::ranges::sort(sorted);
  if (sorted != order_of(Layout::Last, op.rank())) {
    fail(ErrorKind::BadModel, "it does not name each of {} dimensions once", op.rank());
  }
  return perm;
}

/// The dimensions of the result, in its layout, as those of the input in its own.
Ints composed(const Ints& perm, Layout from, Layout to) {
  const auto rank = std::ssize(perm);
  Ints result;
  for (const std::int64_t axis : order_of(to, rank)) {
    const std::int64_t source = perm[static_cast<std::size_t>(axis)];
    result.push_back(from == Layout::First ? first_axis(source, rank) : source);
  }
  return result;
}

void read_transpose(Op& op) {
  const Ints perm = checked_perm(op);
  const Form form = op.form();
  const Layout held = op.translator().layout_of(op.item().inputs[0]);
  for (const Layout to : {Layout::First, Layout::Last}) {
    if (!is_identity(composed(perm, held, to)) || op.rank() < 3) continue;
    return op.set(op.in(0, held, form), to, form);
  }
  const Shape& out = op.out_item().shape;
  if (moves_nothing(op.in_item(0).shape, perm) && out.size() == perm.size() && is_told(out)) {
    return reshape_to(op, out);
  }
  const ValueId x = op.in(0, held, form);
  op.set(op.make().transpose(x, composed(perm, held, Layout::Last)), Layout::Last, form);
}

void read_shape(Op& op) {
  const DType dtype = op.out_item().dtype;
  const Shape& shape = op.in_item(0).shape;
  const Layout held = op.translator().layout_of(op.item().inputs[0]);
  ValueId sizes = op.make().node("Shape", {op.in(0, held, Form::Integers)});
  if (held == Layout::First && shape.size() >= 3) {
    const ValueId order = op.make().ints(order_back(std::ssize(shape)));
    sizes = op.make().node("Gather", {sizes, order}, {{"axis", std::int64_t{0}}});
  }
  op.set(dtype == DType::Int64 ? sizes : op.make().cast(sizes, dtype));
}

void read_rank(Op& op) {
  op.translator().set_constant(op.item().outputs[0],
                               convert(Tensor::scalar<std::int64_t>(op.rank()), DType::Int32));
}

void read_broadcast_to(Op& op) {
  const Form form = op.form();
  op.set(op.make().node("Expand", {op.in(0, Layout::Last, form), op.as_int64(1)}), Layout::Last,
         form);
}

void read_tile(Op& op) {
  const Form form = op.form();
  op.set(op.make().node("Tile", {op.in(0, Layout::Last, form), op.as_int64(1)}), Layout::Last,
         form);
}

void read_fill(Op& op) {
  const Form form = op.form(1);
  const ValueId value = op.in(1, Layout::Last, form);
  op.set(op.make().node("Expand", {value, op.as_int64(0)}), Layout::Last, form);
}

void read_range(Op& op) { op.set(op.make().node("Range", {op.in(0), op.in(1), op.in(2)})); }

constexpr auto kRows = std::to_array<OpRow>({
    {"RESHAPE", 17, "shape:v", read_reshape},
    {"SQUEEZE", 30, "dims:v", read_squeeze},
    {"EXPAND_DIMS", 0, "", read_expand_dims},
    {"TRANSPOSE", 0, "", read_transpose},
    {"SHAPE", 0, "", read_shape},
    {"RANK", 0, "", read_rank},
    {"BROADCAST_TO", 0, "", read_broadcast_to},
    {"TILE", 0, "", read_tile},
    {"FILL", 0, "", read_fill},
    {"RANGE", 0, "", read_range},
});

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace quench::tflite
