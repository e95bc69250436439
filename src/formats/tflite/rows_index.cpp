// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that look elements up by their indices.
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

void read_gather(Op& op) {
  if (op.number("batch_dims") != 0) {
    fail(ErrorKind::Unsupported, "it gathers batch by batch (batch_dims), which is not read");
  }
  const Form form = op.form();
  const std::int64_t axis = op.axis(op.number("axis"), op.rank());
  const Layout held = op.translator().layout_of(op.item().inputs[0]);
  const Layout layout = op.rank(1) == 1 ? held : Layout::Last;
  const std::int64_t along = layout == Layout::First ? first_axis(axis, op.rank()) : axis;
  const ValueId x = op.in(0, layout, form);
  op.set(op.make().node("Gather", {x, op.in(1)}, {{"axis", along}}), layout, form);
}

void read_embedding(Op& op) {
  op.set(op.make().node("Gather", {op.in(1), op.in(0)}, {{"axis", std::int64_t{0}}}));
}

void read_gather_nd(Op& op) {
  const Form form = op.form();
  const ValueId x = op.in(0, Layout::Last, form);
  op.set(op.make().node("GatherND", {x, op.as_int64(1)}), Layout::Last, form);
}

void read_scatter_nd(Op& op) {
  const ValueId zero =
      op.make().scalar(0, op.in_item(1).quantized() ? DType::Float32 : op.in_item(1).dtype);
  const ValueId zeros = op.make().node("Expand", {zero, op.as_int64(2)});
  const ValueId indices = op.make().cast(op.in(0), DType::Int64);
  op.set(
      op.make().node("ScatterND", {zeros, indices, op.in(1)}, {{"reduction", std::string("add")}}));
}

void read_one_hot(Op& op) {
  const ValueId off = op.make().reshape(op.in(3), {1});
  const ValueId on = op.make().reshape(op.in(2), {1});
  const ValueId values = op.make().node("Concat", {off, on}, {{"axis", std::int64_t{0}}});
  op.set(op.make().node("OneHot", {op.in(0), op.in(1), values}, {{"axis", op.number("axis")}}));
}

void read_top_k(Op& op) {
  const ValueId count = op.make().ints({op.need_int(1)});
  const auto found = op.make().nodes("TopK", {op.in(0), count}, 2);
  op.set(found[0]);
  if (op.num_outputs() > 1) op.set(op.make().cast(found[1], op.out_item(1).dtype), {}, {}, 1);
}

/// The places of what is not zero, a row each.
void read_where(Op& op) {
  const ValueId places = op.make().node("NonZero", {op.in(0)});
  op.set(op.make().transpose(places, {1, 0}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"GATHER", 23, "axis:i batch_dims:i", read_gather},
    {"EMBEDDING_LOOKUP", 0, "", read_embedding},
    {"GATHER_ND", 0, "", read_gather_nd},
    {"SCATTER_ND", 0, "", read_scatter_nd},
    {"ONE_HOT", 61, "axis:i", read_one_hot},
    {"TOPK_V2", 0, "", read_top_k},
    {"WHERE", 0, "", read_where},
});

}  // namespace

std::span<const OpRow> index_rows() { return kRows; }

}  // namespace quench::tflite
