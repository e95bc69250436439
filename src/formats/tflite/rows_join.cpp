// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that put tensors together or something around them.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

Form form_of_all(Op& op) {
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.form(i) == Form::Floats) return Form::Floats;
  }
  return Form::Integers;
}

void read_concat(Op& op) {
  const std::int64_t rank = op.out_item().rank();
  const std::int64_t axis = op.axis(op.number("axis"), rank);
  const Layout layout = op.layout();
  const bool plain = op.number("fused") == 0;
  const Form form = plain ? form_of_all(op) : Form::Floats;
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.rank(i) != rank) fail(ErrorKind::BadModel, "input {} has {} dimensions", i, op.rank(i));
    parts.push_back(op.in(i, layout, form));
  }
  const std::int64_t along = layout == Layout::First ? first_axis(axis, rank) : axis;
  const ValueId y = op.make().node("Concat", std::move(parts), {{"axis", along}});
  if (plain) return op.set(y, layout, form);
  op.set_activated(y, layout);
}

void read_pack(Op& op) {
  const std::int64_t axis = op.axis(op.number("axis"), op.out_item().rank());
  const Form form = form_of_all(op);
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < op.num_inputs(); ++i) {
    parts.push_back(op.make().unsqueeze(op.in(i, Layout::Last, form), {axis}));
  }
  op.set(op.make().node("Concat", std::move(parts), {{"axis", axis}}), Layout::Last, form);
}

/// What stands for zero: quantised, it is the zero point.
ValueId zero_of(Op& op, Form form) {
  const TensorItem& x = op.in_item(0);
  if (form == Form::Floats || !x.quantized())
    return op.make().scalar(0, x.quantized() ? DType::Float32 : x.dtype);
  return op.make().scalar(static_cast<double>(x.quantization.zero_point[0]), x.dtype);
}

void pad_with(Op& op, std::string_view mode, bool given) {
  const Ints pairs = op.need_ints(1);
  const std::int64_t rank = op.rank();
  if (std::ssize(pairs) != 2 * rank) {
    fail(ErrorKind::BadModel, "it has {} paddings for {} dimensions", pairs.size(), rank);
  }
  const Form form = op.form();
  const Layout layout = op.translator().layout_of(op.item().inputs[0]);
  Ints begins, ends;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    begins.push_back(pairs[i]);
    ends.push_back(pairs[i + 1]);
  }
  Ints pads = arranged(begins, layout);
  const Ints behind = arranged(ends, layout);
  pads.insert(pads.end(), behind.begin(), behind.end());
  std::vector<ValueId> inputs{op.in(0, layout, form), op.make().ints(pads)};
  if (given) {
    inputs.push_back(op.make().reshape(op.in(2, Layout::Last, form), {}));
  } else if (mode == "constant") {
    inputs.push_back(zero_of(op, form));
  }
  op.set(op.make().node("Pad", std::move(inputs), {{"mode", std::string(mode)}}), layout, form);
}

void read_pad(Op& op) {
  if (!op.hand_on()) pad_with(op, "constant", false);
}
void read_pad_v2(Op& op) { pad_with(op, "constant", true); }

void read_mirror_pad(Op& op) {
  if (op.number("mode") != 0) {
    fail(ErrorKind::Unsupported, "it mirrors with the edge itself (SYMMETRIC), which is not read");
  }
  pad_with(op, "reflect", false);
}

constexpr auto kRows = std::to_array<OpRow>({
    {"CONCATENATION", 10, "axis:i fused:b", read_concat},
    {"PACK", 59, "num:i axis:i", read_pack},
    {"PAD", 0, "", read_pad},
    {"PADV2", 0, "", read_pad_v2},
    {"MIRROR_PAD", 77, "mode:b", read_mirror_pad},
});

}  // namespace

std::span<const OpRow> join_rows() { return kRows; }

}  // namespace quench::tflite
