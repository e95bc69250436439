// SPDX-License-Identifier: Apache-2.0
// What Paddle runs along an axis: products, extremes and sums of exponentials so far. They are put
// together by doubling: after k steps an element has taken in the 2^k that end at it.
#include <array>
#include <functional>
#include <limits>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Combine = std::function<ValueId(ValueId, ValueId)>;

/// An axis along which is run: its place, length and direction.
struct Axis {
  std::int64_t place = 0, length = 0, rank = 0;
  bool reverse = false;
};

Axis axis_of(Op& op, std::string_view input, std::string_view attribute) {
  const Shape shape = op.shape(input).value_or(Shape());
  Axis axis{.place = op.integer(attribute), .length = -1, .rank = std::ssize(shape)};
  if (axis.place < 0) axis.place += axis.rank;
  if (axis.place < 0 || axis.place >= axis.rank ||
      shape[static_cast<std::size_t>(axis.place)] < 0) {
    fail(ErrorKind::Unsupported, "it is read where the program says the size of the axis {}",
         op.integer(attribute));
  }
  axis.length = shape[static_cast<std::size_t>(axis.place)];
  return axis;
}

/// Each element is the one `by` places before it, or `neutral`.
ValueId moved(Op& op, ValueId x, const Axis& axis, std::int64_t by, ValueId neutral) {
  std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * axis.rank), 0);
  pads[static_cast<std::size_t>(axis.reverse ? axis.rank + axis.place : axis.place)] = by;
  const ValueId padded = op.node("Pad", {x, op.ints(pads), neutral});
  const std::int64_t start = axis.reverse ? by : 0;
  return op.slice(padded, axis.place, start, start + axis.length);
}

ValueId run_along(Op& op, ValueId x, const Axis& axis, ValueId neutral, const Combine& combine) {
  constexpr std::int64_t kMost = 1 << 24;
  if (axis.length > kMost) fail(ErrorKind::Unsupported, "its axis has {} elements", axis.length);
  for (std::int64_t by = 1; by < axis.length; by *= 2) {
    x = combine(moved(op, x, axis, by, neutral), x);
  }
  return x;
}

/// Elements that are all in a row where there is no axis.
ValueId flattened(Op& op, Axis& axis) {
  const Shape shape = op.need_shape("X");
  axis = {.place = 0, .length = num_elements(shape).value_or(0), .rank = 1};
  return op.reshape(op.in("X"), {-1});
}

void run_flags(Op& op, ValueId x, Axis axis, double neutral, const Combine& combine) {
  axis.reverse = op.flag("reverse");
  const ValueId start = op.scalar(neutral, op.dtype("X"));
  if (op.flag("exclusive")) x = moved(op, x, axis, 1, start);
  const ValueId made = run_along(op, x, axis, start, combine);
  op.set("Out", made);
}

void read_cumprod(Op& op) {
  run_flags(op, op.in("X"), axis_of(op, "X", "dim"), 1, [&](ValueId a, ValueId b) {
    return op.node("Mul", {a, b});
  });
}

/// log(exp(a) + exp(b)), kept from overflow by what is greater.
void read_logcumsumexp(Op& op) {
  Axis axis;
  const bool flat = op.flag("flatten");
  const ValueId x = flat ? flattened(op, axis) : op.in("X");
  if (!flat) axis = axis_of(op, "X", "axis");
  const ValueId one = op.scalar(1, op.dtype("X"));
  // What is added to nothing is itself: the difference to the lowest number is infinite.
  run_flags(op, x, axis, std::numeric_limits<float>::lowest(), [&](ValueId a, ValueId b) {
    const ValueId apart = op.node("Neg", {op.node("Abs", {op.node("Sub", {a, b})})});
    const ValueId more = op.node("Log", {op.node("Add", {op.node("Exp", {apart}), one})});
    return op.node("Add", {op.node("Max", {a, b}), more});
  });
}

/// Where extremes are: the last place so far at which an element is the extreme so far.
ValueId places_of(Op& op, ValueId x, ValueId found, const Axis& axis) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(axis.length));
  for (std::int64_t i = 0; i < axis.length; ++i) numbers[static_cast<std::size_t>(i)] = i;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(axis.rank), 1);
  shape[static_cast<std::size_t>(axis.place)] = axis.length;
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId here =
      op.node("Where", {op.node("Equal", {x, found}), op.reshape(op.ints(numbers), shape), zero});
  return run_along(op, here, axis, zero, [&](ValueId a, ValueId b) {
    return op.node("Max", {a, b});
  });
}

void extremes(Op& op, std::string_view op_type, double neutral) {
  constexpr std::int64_t kMost = 1 << 20;
  const Axis axis = axis_of(op, "x", "axis");
  if (axis.length > kMost) fail(ErrorKind::Unsupported, "its axis has {} elements", axis.length);
  const DType dtype = op.dtype("x");
  const ValueId found =
      run_along(op, op.in("x"), axis, op.scalar(neutral, dtype), [&](ValueId a, ValueId b) {
        return op.node(op_type, {a, b});
      });
  const ValueId places = places_of(op, op.in("x"), found, axis);
  op.set("out", found);
  op.set("indices", op.cast(places, op.dtype("indices")));
}

/// The least number of an element type, or the greatest.
double bound(DType dtype, bool least) {
  if (info(dtype).is_float) {
    const double most = std::numeric_limits<double>::infinity();
    return least ? -most : most;
  }
  if (dtype == DType::Int32) {
    return least ? std::numeric_limits<std::int32_t>::lowest()
                 : std::numeric_limits<std::int32_t>::max();
  }
  // The greatest that a double tells from the next.
  constexpr double kMost = 9'007'199'254'740'992.0;
  return least ? -kMost : kMost;
}

void read_cummax(Op& op) { extremes(op, "Max", bound(op.dtype("x"), true)); }
void read_cummin(Op& op) { extremes(op, "Min", bound(op.dtype("x"), false)); }

constexpr auto kRows = std::to_array<OpRow>({
    {"cumprod", "", "X", "Out", "dim exclusive=false reverse=false", read_cumprod},
    {"logcumsumexp", "", "X", "Out", "axis=-1 flatten=false exclusive=false reverse=false",
     read_logcumsumexp},
    {"cummax", "", "x", "out indices", "axis=-1 dtype=3", read_cummax},
    {"cummin", "", "x", "out indices", "axis=-1 dtype=3", read_cummin},
});

}  // namespace

std::span<const OpRow> scan_rows() { return kRows; }

}  // namespace quench::paddle
