// SPDX-License-Identifier: Apache-2.0
// TFLite's reductions.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

struct Reduction {
  Ints axes;
  bool keep = false;
  Layout from = Layout::Last;
  Layout to = Layout::Last;
};

bool holds(const Ints& axes, std::int64_t axis) { return std::ranges::count(axes, axis) > 0; }

/// The result has channels first as well where batch and channels stay, or stays as it is where
/// the channels themselves are reduced.
Reduction plan(Op& op) {
  Reduction result;
  const std::int64_t rank = op.rank();
  for (const std::int64_t axis : op.need_ints(1)) result.axes.push_back(op.axis(axis, rank));
  std::ranges::sort(result.axes);
  result.axes.erase(std::unique(result.axes.begin(), result.axes.end()), result.axes.end());
  result.keep = op.number("keep") != 0;
  if (rank < 3 || op.translator().layout_of(op.item().inputs[0]) == Layout::Last) return result;
  const bool channels = holds(result.axes, rank - 1);
  const std::int64_t left = rank - std::ssize(result.axes);
  if (result.keep) {
    result.from = result.to = Layout::First;
  } else if (channels) {
    result.from = Layout::First;
  } else if (!holds(result.axes, 0) && (left >= 3 || left == 2)) {
    result.from = result.to = Layout::First;
  }
  return result;
}

template <const char* kOpType>
void read_reduce(Op& op) {
  const Reduction how = plan(op);
  if (how.axes.empty()) return op.set(op.in(0, how.from), how.to);
  Ints axes;
  for (const std::int64_t axis : how.axes) {
    axes.push_back(how.from == Layout::First ? first_axis(axis, op.rank()) : axis);
  }
  std::ranges::sort(axes);
  op.set(op.make().reduce(kOpType, op.in(0, how.from), axes, how.keep), how.to);
}

constexpr char kMean[] = "ReduceMean";
constexpr char kSum[] = "ReduceSum";
constexpr char kMax[] = "ReduceMax";
constexpr char kMin[] = "ReduceMin";
constexpr char kProd[] = "ReduceProd";

/// The index of the greatest or least; the first of several.
template <const char* kOpType>
void read_arg(Op& op) {
  const std::int64_t rank = op.rank();
  const std::int64_t axis = op.axis(op.need_int(1), rank);
  const Layout held = op.translator().layout_of(op.item().inputs[0]);
  const Layout from = rank >= 3 && axis == rank - 1 ? held : Layout::Last;
  const std::int64_t along = from == Layout::First ? first_axis(axis, rank) : axis;
  const ValueId index =
      op.make().node(kOpType, {op.in(0, from)}, {{"axis", along}, {"keepdims", std::int64_t{0}}});
  const DType dtype = op.out_item().dtype;
  op.set(dtype == DType::Int64 ? index : op.make().cast(index, dtype));
}

constexpr char kArgMax[] = "ArgMax";
constexpr char kArgMin[] = "ArgMin";

/// ONNX has none of truth values: the greatest or least of 0 and 1.
template <const char* kOpType>
void read_logical(Op& op) {
  Ints axes;
  for (const std::int64_t axis : op.need_ints(1)) axes.push_back(op.axis(axis, op.rank()));
  const ValueId numbers = op.make().cast(op.in(0), DType::Int32);
  const ValueId found = op.make().reduce(kOpType, numbers, axes, op.number("keep") != 0);
  op.set(op.make().cast(found, DType::Bool));
}

void read_cumsum(Op& op) {
  const ValueId axis =
      op.make().scalar(static_cast<double>(op.axis(op.need_int(1), op.rank())), DType::Int64);
  op.set(
      op.make().node("CumSum", {op.in(0), axis},
                     {{"exclusive", op.number("exclusive")}, {"reverse", op.number("reverse")}}));
}

constexpr std::string_view kOptions = "keep:t";

constexpr auto kRows = std::to_array<OpRow>({
    {"MEAN", 27, kOptions, read_reduce<kMean>},
    {"SUM", 27, kOptions, read_reduce<kSum>},
    {"REDUCE_MAX", 27, kOptions, read_reduce<kMax>},
    {"REDUCE_MIN", 27, kOptions, read_reduce<kMin>},
    {"REDUCE_PROD", 27, kOptions, read_reduce<kProd>},
    {"REDUCE_ANY", 27, kOptions, read_logical<kMax>},
    {"REDUCE_ALL", 27, kOptions, read_logical<kMin>},
    {"ARG_MAX", 0, "", read_arg<kArgMax>},
    {"ARG_MIN", 0, "", read_arg<kArgMin>},
    {"CUMSUM", 102, "exclusive:t reverse:t", read_cumsum},
});

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace quench::tflite
