// SPDX-License-Identifier: Apache-2.0
// TFLite's pools.
#include <array>

#include "formats/foreign.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/window.h"

namespace quench::tflite {
namespace {

NodeAttributes pool_attributes(Op& op) {
  expect_image(op);
  return window_attributes(
      op, {.kernel = {op.number("filter_h"), op.number("filter_w")}, .strides = strides_of(op)});
}

void read_average(Op& op) {
  const ValueId x = op.in(0, Layout::First);
  const ValueId y = op.make().node("AveragePool", {x}, pool_attributes(op));
  if (op.in_item(0).quantized()) op.make().graph().nodes.back().foreign = kHalvesAway;
  op.set_activated(y, Layout::First);
}

void read_max(Op& op) {
  // The greatest of integers is the integer of the greatest.
  const bool plain = op.number("fused") == 0 && op.form() == Form::Integers;
  const Form form = plain ? Form::Integers : Form::Floats;
  const ValueId y = op.make().node("MaxPool", {op.in(0, Layout::First, form)}, pool_attributes(op));
  if (plain) return op.set(y, Layout::First, form);
  op.set_activated(y, Layout::First);
}

/// The root of the mean of squares.
void read_l2(Op& op) {
  const ValueId x = op.in(0, Layout::First);
  const ValueId squares = op.make().node("Mul", {x, x});
  const ValueId mean = op.make().node("AveragePool", {squares}, pool_attributes(op));
  op.set_activated(op.make().node("Sqrt", {mean}), Layout::First);
}

constexpr std::string_view kOptions =
    "padding:b stride_w:i stride_h:i filter_w:i filter_h:i fused:b";

constexpr auto kRows = std::to_array<OpRow>({
    {"AVERAGE_POOL_2D", 5, kOptions, read_average},
    {"MAX_POOL_2D", 5, kOptions, read_max},
    {"L2_POOL_2D", 5, kOptions, read_l2},
});

}  // namespace

std::span<const OpRow> pool_rows() { return kRows; }

}  // namespace quench::tflite
