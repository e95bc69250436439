// SPDX-License-Identifier: Apache-2.0
// Paddle's gathers, scatters, tables and conditions.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

void read_gather(Op& op) {
  const ValueId index = op.rank("Index") == 1 ? op.in("Index") : op.reshape(op.in("Index"), {-1});
  op.set("Out", op.node("Gather", {op.in("X"), index}, {{"axis", op.single("axis")}}));
}

void read_gather_nd(Op& op) {
  op.set("Out", op.node("GatherND", {op.in("X"), op.cast(op.in("Index"), DType::Int64)}));
}

void read_index_select(Op& op) {
  op.set("Out", op.node("Gather", {op.in("X"), op.in("Index")}, {{"axis", op.integer("dim")}}));
}

void read_take_along_axis(Op& op) {
  op.set("Result", op.node("GatherElements", {op.in("Input"), op.in("Index")},
                           {{"axis", op.integer("Axis")}}));
}

/// Whole rows are replaced; else those named are cleared once and then added to.
void read_scatter(Op& op) {
  const ValueId ids = op.cast(op.reshape(op.in("Ids"), {-1, 1}), DType::Int64);
  const ValueId updates = op.in("Updates");
  if (op.flag("overwrite")) {
    op.set("Out", op.node("ScatterND", {op.in("X"), ids, updates}));
    return;
  }
  const ValueId zero = op.scalar(0, op.dtype("X"));
  const ValueId zeros = op.node("Expand", {zero, op.sizes(updates)});
  const ValueId cleared = op.node("ScatterND", {op.in("X"), ids, zeros});
  op.set("Out", op.node("ScatterND", {cleared, ids, updates}, {{"reduction", std::string("add")}}));
}

void read_scatter_nd_add(Op& op) {
  op.set("Out",
         op.node("ScatterND", {op.in("X"), op.cast(op.in("Index"), DType::Int64), op.in("Updates")},
                 {{"reduction", std::string("add")}}));
}

bool is_zero_row(const Tensor& table, std::int64_t row) {
  if (table.rank() != 2 || row >= table.shape()[0]) return false;
  const std::vector<float> values = to_float(table);
  const std::int64_t width = table.shape()[1];
  const auto first = values.begin() + row * width;
  return std::all_of(first, first + width, [](float value) { return value == 0; });
}

void look_up(Op& op, ValueId ids) {
  const ValueId rows = op.node("Gather", {op.in("W"), ids}, {{"axis", std::int64_t{0}}});
  const std::int64_t padding = op.integer("padding_idx");
  const Tensor* table = op.constant_of(op.in("W"));
  if (padding < 0 || (table != nullptr && is_zero_row(*table, padding))) {
    op.set("Out", rows);
    return;
  }
  const ValueId real = op.node(
      "Not", {op.node("Equal", {ids, op.scalar(static_cast<double>(padding), op.dtype("Ids"))})});
  const ValueId mask = op.unsqueeze(op.cast(real, op.dtype("W")), {-1});
  op.set("Out", op.node("Mul", {rows, mask}));
}

void read_lookup_v2(Op& op) { look_up(op, op.in("Ids")); }
/// The last dimension of the indices is 1 and goes.
void read_lookup(Op& op) { look_up(op, op.squeeze(op.in("Ids"), {-1})); }

void one_hot(Op& op, ValueId indices) {
  const ValueId depth = op.as_value(op.list("depth"));
  const ValueId off_on = op.constant(Tensor::of<float>({2}, {0.0F, 1.0F}));
  op.set("Out", op.node("OneHot", {indices, depth, off_on}, {{"axis", std::int64_t{-1}}}));
}

void read_one_hot_v2(Op& op) { one_hot(op, op.in("X")); }
void read_one_hot(Op& op) { one_hot(op, op.squeeze(op.in("X"), {-1})); }

void read_where(Op& op) {
  const bool same = op.dtype("X") == op.dtype("Y");
  const ValueId other = same ? op.in("Y") : op.cast(op.in("Y"), op.dtype("X"));
  op.set("Out", op.node("Where", {op.in("Condition"), op.in("X"), other}));
}

void read_where_index(Op& op) {
  op.set("Out", op.transpose(op.node("NonZero", {op.in("Condition")}), {1, 0}));
}

void read_is_nan(Op& op) { op.set("Out", op.node("IsNaN", {op.in("X")})); }
void read_is_inf(Op& op) { op.set("Out", op.node("IsInf", {op.in("X")})); }
void read_is_finite(Op& op) {
  const ValueId odd =
      op.node("Or", {op.node("IsNaN", {op.in("X")}), op.node("IsInf", {op.in("X")})});
  op.set("Out", op.node("Not", {odd}));
}

ValueId bound(Op& op, std::string_view name) {
  const ValueId given = op.tensor_of(name);
  if (given != kNoValue && op.constant_of(given) == nullptr) {
    return op.cast(op.reshape(given, {}), op.dtype("X"));
  }
  return op.scalar(op.number(name), op.dtype("X"));
}

void read_clip(Op& op) {
  const ValueId least = bound(op, "min");
  op.set("Out", op.node("Clip", {op.in("X"), least, bound(op, "max")}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"gather", "", "X Index axis:Axis", "Out", "axis=0", read_gather},
    {"gather_nd", "", "X Index", "Out", "", read_gather_nd},
    {"index_select", "", "X Index", "Out", "dim|axis=0", read_index_select},
    {"take_along_axis", "", "Input Index", "Result", "Axis|axis", read_take_along_axis},
    {"scatter", "", "X Ids Updates", "Out", "overwrite=true", read_scatter, 16},
    {"scatter_nd_add", "", "X Index Updates", "Out", "", read_scatter_nd_add, 16},
    {"lookup_table_v2", "embedding", "Ids W", "Out", "padding_idx=-1", read_lookup_v2},
    {"lookup_table", "-", "Ids W", "Out", "padding_idx=-1", read_lookup},
    {"one_hot_v2", "one_hot", "X depth:depth_tensor", "Out", "depth|num_classes", read_one_hot_v2},
    {"one_hot", "-", "X depth:depth_tensor", "Out", "depth", read_one_hot},
    {"where", "", "Condition X Y", "Out", "", read_where},
    {"where_index", "nonzero", "Condition", "Out", "", read_where_index},
    {"isnan_v2", "isnan", "X", "Out", "", read_is_nan},
    {"isinf_v2", "isinf", "X", "Out", "", read_is_inf},
    {"isfinite_v2", "isfinite", "X", "Out", "", read_is_finite},
    {"clip", "", "X min:Min max:Max", "Out", "min max", read_clip},
});

}  // namespace

std::span<const OpRow> pick_rows() { return kRows; }

}  // namespace quench::paddle
