// SPDX-License-Identifier: Apache-2.0
// Paddle's slices, and writing into them.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

/// Without the dimensions that an index took away. Older programs keep the last as one of size 1.
void set_decreased(Op& op, ValueId value, const Ints& decrease) {
  if (decrease.empty()) {
    op.set("Out", value);
  } else if (op.rank("Out") == 1 && op.rank("Input") == std::ssize(decrease)) {
    op.set("Out", op.reshape(value, {1}));
  } else {
    op.set("Out", op.squeeze(value, decrease));
  }
}

void read_slice(Op& op) {
  const ValueId starts = op.as_value(op.list("starts"));
  const ValueId ends = op.as_value(op.list("ends"));
  const ValueId axes = op.ints(op.integers("axes"));
  set_decreased(op, op.node("Slice", {op.in("Input"), starts, ends, axes}),
                op.integers("decrease_axis"));
}

void read_strided_slice(Op& op) {
  const ValueId starts = op.as_value(op.list("starts"));
  IntList last = op.list("ends");
  const IntList strides = op.list("strides");
  // Backwards, an end of -1 is before the first element, not the last one.
  for (std::size_t i = 0; i < std::min(last.numbers.size(), strides.numbers.size()); ++i) {
    if (last.numbers[i] == -1 && strides.numbers[i] < 0) last.numbers[i] = -kEnd;
  }
  const ValueId ends = op.as_value(last);
  const ValueId axes = op.ints(op.integers("axes"));
  const ValueId steps = op.as_value(strides);
  set_decreased(op, op.node("Slice", {op.in("Input"), starts, ends, axes, steps}),
                op.integers("decrease_axis"));
}

/// What is written along one dimension: from a start to an end, in steps. As numbers, or computed.
struct Range {
  std::int64_t axis, start, end, step;
  ValueId from, to;  ///< kNoValue: numbers

  bool plain() const noexcept { return from == kNoValue && step == 1; }
};

/// `x` with `value` in the places of a dimension that steps or computed ends name.
ValueId scattered(Op& op, ValueId x, ValueId value, const Range& range, ValueId bounds[3]) {
  const std::int64_t rank = op.need_rank("Input");
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId one = op.constant(Tensor::scalar<std::int64_t>(1));
  const ValueId size = op.reshape(op.size_of(x, range.axis), {});
  const ValueId all = op.node("Range", {zero, size, one});
  const ValueId places = op.node("Slice", {all, bounds[0], bounds[1], op.ints({0}), bounds[2]});
  Ints perm{range.axis};
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != range.axis) perm.push_back(i);
  }
  Ints back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  }
  const ValueId made = op.node(
      "ScatterND", {op.transpose(x, perm), op.unsqueeze(places, {-1}), op.transpose(value, perm)});
  return op.transpose(made, back);
}

/// `x` with `value` in the part that the ranges from `at` on name: what lies before and after in
/// one dimension stays, what lies between is made the same way from the next.
ValueId overwritten(Op& op, ValueId x, ValueId value, const std::vector<Range>& ranges,
                    std::size_t at) {
  if (at == ranges.size()) return op.node("Expand", {value, op.sizes(x)});
  const auto& [axis, start, end, step, from, to] = ranges[at];
  if (!ranges[at].plain()) {
    ValueId bounds[3] = {from == kNoValue ? op.ints({start}) : from,
                         to == kNoValue ? op.ints({end}) : to, op.ints({step})};
    const ValueId part = op.node("Slice", {x, bounds[0], bounds[1], op.ints({axis}), bounds[2]});
    return scattered(op, x, overwritten(op, part, value, ranges, at + 1), ranges[at], bounds);
  }
  std::vector<ValueId> parts;
  if (start != 0) parts.push_back(op.slice(x, axis, 0, start));
  parts.push_back(overwritten(op, op.slice(x, axis, start, end), value, ranges, at + 1));
  if (end != kEnd) parts.push_back(op.slice(x, axis, end, kEnd));
  return parts.size() == 1 ? parts[0] : op.node("Concat", parts, {{"axis", axis}});
}

Tensor values_of(Op& op, DType dtype) {
  if (auto values = op.literal(dtype)) return std::move(*values);
  fail(ErrorKind::BadModel, "it has no values to write");
}

/// Element `at` of a list that is computed.
ValueId element(Op& op, const IntList& list, std::size_t at) {
  const auto place = static_cast<std::int64_t>(at);
  return list.computed() ? op.slice(list.value, 0, place, place + 1) : kNoValue;
}

std::vector<Range> ranges_of(Op& op) {
  const Ints given = op.integers("axes");
  const IntList starts = op.list("starts");
  const IntList ends = op.list("ends");
  const Ints steps = op.numbers("steps");
  const std::int64_t rank = op.rank("Input").value_or(0);
  constexpr std::size_t kMostAxes = 16;
  const auto fits = [&](const IntList& list) {
    return list.computed() || list.numbers.size() == given.size();
  };
  if (!fits(starts) || !fits(ends) || given.size() > kMostAxes) {
    fail(ErrorKind::BadModel, "its starts, ends and axes differ in number");
  }
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < given.size(); ++i) {
    Range range{.axis = given[i] < 0 ? given[i] + rank : given[i],
                .start = starts.computed() ? 0 : starts.numbers[i],
                .end = ends.computed() ? 0 : ends.numbers[i],
                .step = i < steps.size() ? steps[i] : 1,
                .from = element(op, starts, i),
                .to = element(op, ends, i)};
    if (range.step == 0) fail(ErrorKind::BadModel, "it writes with a step of 0");
    const bool backwards = range.step < 0;
    // Where the end goes past the dimension, and an end of 0 after a start of -1.
    const bool to_end = (!backwards && range.end == 0 && range.start < 0) || range.end >= kEnd / 2;
    if (to_end && !backwards) range.end = kEnd;
    if (backwards && range.end == -1) range.end = -kEnd;
    ranges.push_back(range);
  }
  return ranges;
}

void read_set_value(Op& op) {
  if (!op.integers("none_axes").empty()) fail(ErrorKind::Unsupported, "it writes into new axes");
  const std::vector<Range> ranges = ranges_of(op);
  const DType dtype = op.dtype("Input");
  ValueId value = op.has("ValueTensor") ? op.in("ValueTensor") : op.constant(values_of(op, dtype));
  if (op.has("ValueTensor") && op.dtype("ValueTensor") != dtype) value = op.cast(value, dtype);
  const Ints decrease = op.integers("decrease_axes");
  if (!decrease.empty() && op.has("ValueTensor")) value = op.unsqueeze(value, decrease);
  op.set("Out", overwritten(op, op.in("Input"), value, ranges, 0));
}

constexpr std::string_view kSetAttributes =
    "axes starts= ends= steps= decrease_axes= none_axes= shape= values= fp32_values= "
    "int32_values= int64_values= bool_values=";

constexpr auto kRows = std::to_array<OpRow>({
    {"slice", "", "Input starts:StartsTensorList,StartsTensor ends:EndsTensorList,EndsTensor",
     "Out", "axes starts= ends= decrease_axis=", read_slice},
    {"strided_slice", "",
     "Input starts:StartsTensorList,StartsTensor ends:EndsTensorList,EndsTensor "
     "strides:StridesTensorList,StridesTensor",
     "Out", "axes starts= ends= strides= decrease_axis=", read_strided_slice},
    {"set_value", "set_value",
     "Input starts:StartsTensorList ends:EndsTensorList steps:StepsTensorList / ValueTensor", "Out",
     kSetAttributes, read_set_value},
    {"set_value_with_tensor", "",
     "Input ValueTensor starts:StartsTensorList ends:EndsTensorList steps:StepsTensorList", "Out",
     kSetAttributes, read_set_value},
});

}  // namespace

std::span<const OpRow> slice_rows() { return kRows; }

}  // namespace quench::paddle
