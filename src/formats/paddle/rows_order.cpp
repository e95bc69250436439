// SPDX-License-Identifier: Apache-2.0
// Paddle's operators that count and order elements: medians, distinct elements, places in a sorted
// row.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

ValueId int_scalar(Op& op, std::int64_t value) {
  return op.constant(Tensor::scalar<std::int64_t>(value));
}

/// How many elements of a sorted row stand before each value.
void read_searchsorted(Op& op) {
  const ValueId sorted = op.unsqueeze(op.in("SortedSequence"), {-2});
  const ValueId values = op.unsqueeze(op.in("Values"), {-1});
  const std::string_view compare = op.flag("right") ? "LessOrEqual" : "Less";
  const ValueId before = op.cast(op.node(compare, {sorted, values}), DType::Int64);
  const ValueId count = op.reduce("ReduceSum", before, {-1}, false);
  op.set("Out", op.flag("out_int32") ? op.cast(count, DType::Int32) : count);
}

DType index_type(Op& op) { return dtype_of(static_cast<std::int32_t>(op.integer("dtype"))); }

void set_index(Op& op, std::string_view output, ValueId value) {
  if (op.makes(output)) op.set(output, op.cast(value, index_type(op)));
}

/// The distinct elements or slices, in their order, or by first appearance where it is asked for.
void read_unique(Op& op) {
  const Ints axis = op.integers("axis");
  if (axis.size() > 1) fail(ErrorKind::BadModel, "it has {} axes", axis.size());
  Attributes attributes{{"sorted", std::int64_t{op.flag("is_sorted")}}};
  if (!axis.empty()) attributes.emplace_back("axis", axis[0]);
  const auto made = op.nodes("Unique", {op.in("X")}, 4, attributes);
  op.set("Out", made[0]);
  if (op.flag("return_index")) set_index(op, "Indices", made[1]);
  if (op.flag("return_inverse") || !op.flag("is_sorted")) set_index(op, "Index", made[2]);
  if (op.flag("return_counts")) set_index(op, "Counts", made[3]);
}

/// Elements that differ from the one before them.
void read_unique_consecutive(Op& op) {
  if (!op.integers("axis").empty()) {
    fail(ErrorKind::Unsupported, "it compares slices; it is read where it compares elements");
  }
  const ValueId x = op.reshape(op.in("X"), {-1});
  const ValueId differs =
      op.node("Not", {op.node("Equal", {op.slice(x, 0, 1, kEnd), op.slice(x, 0, 0, -1)})});
  // The first differs from nothing, where there is one.
  const ValueId first =
      op.cast(op.slice(op.node("Shape", {op.slice(x, 0, 0, 1)}), 0, 0, 1), DType::Bool);
  const ValueId any = op.node("Compress", {first, first});
  const ValueId starts = op.node("Concat", {any, differs}, {{"axis", std::int64_t{0}}});
  op.set("Out", op.node("Compress", {x, starts}, {{"axis", std::int64_t{0}}}));
  if (op.flag("return_inverse")) {
    const ValueId so_far = op.node("CumSum", {op.cast(starts, DType::Int64), int_scalar(op, 0)});
    set_index(op, "Index", op.node("Sub", {so_far, int_scalar(op, 1)}));
  }
  if (op.flag("return_counts")) {
    const ValueId places = op.reshape(op.node("NonZero", {starts}), {-1});
    const ValueId ends = op.node("Concat", {op.slice(places, 0, 1, kEnd), op.size_of(x, 0)},
                                 {{"axis", std::int64_t{0}}});
    set_index(op, "Counts", op.node("Sub", {ends, places}));
  }
}

/// The axes that a median goes over as the last one, and what brings them there.
struct Rows {
  ValueId values = kNoValue;
  Ints axes;  ///< that went
};

Rows rows_of(Op& op) {
  const std::int64_t rank = op.need_rank("X");
  Rows rows{.values = op.in("X"), .axes = op.numbers("axis")};
  for (std::int64_t& axis : rows.axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) fail(ErrorKind::BadModel, "it has no dimension {}", axis);
  }
  std::ranges::sort(rows.axes);
  if (std::ranges::adjacent_find(rows.axes) != rows.axes.end()) {
    fail(ErrorKind::BadModel, "it names a dimension twice");
  }
  if (rows.axes.empty()) {
    rows.axes.resize(static_cast<std::size_t>(rank));
    std::iota(rows.axes.begin(), rows.axes.end(), std::int64_t{0});
  }
  Ints perm;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (std::ranges::find(rows.axes, i) == rows.axes.end()) perm.push_back(i);
  }
  const std::int64_t kept = std::ssize(perm);
  perm.insert(perm.end(), rows.axes.begin(), rows.axes.end());
  if (!std::ranges::is_sorted(perm)) rows.values = op.transpose(rows.values, perm);
  if (rows.axes.size() != 1) {
    const ValueId shape =
        op.node("Concat", {op.slice(op.sizes(rows.values), 0, 0, kept), op.ints({-1})},
                {{"axis", std::int64_t{0}}});
    rows.values = op.node("Reshape", {rows.values, shape});
  }
  return rows;
}

/// The mean of the two in the middle, or the smaller of them; what is no number comes last.
void median(Op& op, bool ignore_nan) {
  const Rows rows = rows_of(op);
  const DType dtype = info(op.dtype("X")).is_float ? op.dtype("X") : DType::Float32;
  const ValueId x = op.cast(rows.values, dtype);
  const ValueId odd = op.node("IsNaN", {x});
  const ValueId most = op.scalar(std::numeric_limits<double>::infinity(), dtype);
  const ValueId filled = op.node("Where", {odd, most, x});
  const auto sorted = op.nodes("TopK", {filled, op.slice(op.sizes(x), 0, -1, kEnd)}, 2,
                               {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{0}}});
  const ValueId good = op.cast(op.node("Not", {odd}), DType::Int64);
  const ValueId count = op.reduce("ReduceSum", good, {-1}, true);
  const auto element = [&](ValueId place) {
    const ValueId inside = op.node("Max", {place, int_scalar(op, 0)});
    return op.node("GatherElements", {sorted[0], inside}, {{"axis", std::int64_t{-1}}});
  };
  const ValueId two = int_scalar(op, 2);
  const ValueId low = element(op.node("Div", {op.node("Sub", {count, int_scalar(op, 1)}), two}));
  ValueId middle = low;
  if (op.text("mode") == "avg") {
    const ValueId high = element(op.node("Div", {count, two}));
    middle = op.node("Mul", {op.node("Add", {low, high}), op.scalar(0.5, dtype)});
  }
  const ValueId least = ignore_nan ? int_scalar(op, 1) : op.slice(op.sizes(x), 0, -1, kEnd);
  const ValueId none = op.scalar(std::numeric_limits<double>::quiet_NaN(), dtype);
  middle = op.node("Where", {op.node("Less", {count, least}), none, middle});
  middle = op.squeeze(middle, {-1});
  if (op.flag("keepdim")) middle = op.unsqueeze(middle, rows.axes);
  op.set("Out", middle);
}
void read_median(Op& op) { median(op, false); }
void read_nanmedian(Op& op) { median(op, true); }

/// The share of labels that are among the places of the greatest elements.
void read_accuracy(Op& op) {
  const ValueId label = op.cast(op.in("Label"), DType::Int64);
  const ValueId hits = op.cast(op.node("Equal", {op.in("Indices"), label}), DType::Int64);
  const ValueId right =
      op.reduce("ReduceSum", op.reduce("ReduceMax", hits, {1}, false), {0}, false);
  const ValueId all = op.reshape(op.size_of(op.in("Out"), 0), {});
  const auto share = [&](ValueId value) { return op.cast(value, DType::Float32); };
  // Older programs have one of each, newer ones a scalar.
  const auto set = [&](std::string_view output, ValueId value) {
    if (op.makes(output)) op.set(output, op.rank(output) == 1 ? op.unsqueeze(value, {0}) : value);
  };
  set("Accuracy", op.node("Div", {share(right), share(all)}));
  set("Correct", op.cast(right, DType::Int32));
  set("Total", op.cast(all, DType::Int32));
}

constexpr std::string_view kMedian = "axis= keepdim=false mode=avg";

constexpr auto kRows = std::to_array<OpRow>({
    {"searchsorted", "", "SortedSequence Values", "Out", "out_int32=false right=false",
     read_searchsorted},
    {"unique", "", "X", "Out Indices Index Counts",
     "axis= dtype=3 is_sorted=false return_index=false return_inverse=false return_counts=false",
     read_unique},
    {"unique_consecutive", "", "X", "Out Index Counts",
     "axis= dtype=3 return_inverse=false return_counts=false", read_unique_consecutive},
    {"median", "", "X", "Out MedianIndex", kMedian, read_median},
    {"accuracy", "", "Out Indices Label", "Accuracy Correct Total", "", read_accuracy},
    {"nanmedian", "", "X", "Out MedianIndex", kMedian, read_nanmedian},
});

}  // namespace

std::span<const OpRow> order_rows() { return kRows; }

}  // namespace quench::paddle
