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
  const ValueId ends = op.as_value(op.list("ends"));
  const ValueId axes = op.ints(op.integers("axes"));
  const ValueId steps = op.as_value(op.list("strides"));
  set_decreased(op, op.node("Slice", {op.in("Input"), starts, ends, axes, steps}),
                op.integers("decrease_axis"));
}

struct Range {
  std::int64_t axis, start, end;
};

/// `x` with `value` in the part that the ranges from `at` on name: what lies before and after in
/// one dimension stays, what lies between is made the same way from the next.
ValueId overwritten(Op& op, ValueId x, ValueId value, const std::vector<Range>& ranges,
                    std::size_t at) {
  if (at == ranges.size()) return op.node("Expand", {value, op.sizes(x)});
  const auto& [axis, start, end] = ranges[at];
  std::vector<ValueId> parts;
  if (start != 0) parts.push_back(op.slice(x, axis, 0, start));
  parts.push_back(overwritten(op, op.slice(x, axis, start, end), value, ranges, at + 1));
  if (end != kEnd) parts.push_back(op.slice(x, axis, end, kEnd));
  return parts.size() == 1 ? parts[0] : op.node("Concat", parts, {{"axis", axis}});
}

Tensor values_of(Op& op, DType dtype) {
  for (const std::string_view name :
       {"values", "fp32_values", "int32_values", "int64_values", "bool_values"}) {
    if (!op.given(name)) continue;
    const std::vector<double> values = op.reals(name);
    if (values.empty()) continue;
    const Shape shape = op.integers("shape");
    if (num_elements(shape) != std::ssize(values)) {
      fail(ErrorKind::BadModel, "its shape takes {} values; it has {}", to_string(shape),
           values.size());
    }
    return convert(Tensor::of<double>(shape, std::span<const double>(values)), dtype);
  }
  fail(ErrorKind::BadModel, "it has no values to write");
}

void read_set_value(Op& op) {
  const Ints axes = op.integers("axes");
  const Ints starts = op.numbers("starts");
  const Ints ends = op.numbers("ends");
  const Ints steps = op.numbers("steps");
  constexpr std::size_t kMostAxes = 16;
  const bool fits =
      starts.size() == axes.size() && ends.size() == axes.size() && axes.size() <= kMostAxes;
  if (!fits) fail(ErrorKind::BadModel, "its starts, ends and axes differ in number");
  if (std::ranges::any_of(steps, [](std::int64_t step) { return step != 1; }) ||
      !op.integers("none_axes").empty()) {
    fail(ErrorKind::Unsupported, "it writes with a step or into new axes");
  }
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    // An end of 0 after a start of -1 is the end of the dimension.
    const bool to_end = ends[i] == 0 && starts[i] < 0;
    ranges.push_back({axes[i], starts[i], to_end || ends[i] >= kEnd / 2 ? kEnd : ends[i]});
  }
  const DType dtype = op.dtype("Input");
  ValueId value = op.has("ValueTensor") ? op.in("ValueTensor") : op.constant(values_of(op, dtype));
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
