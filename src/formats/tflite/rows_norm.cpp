// SPDX-License-Identifier: Apache-2.0
// TFLite's operators that scale each row of channels by what is in it.
#include <array>

#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/window.h"

namespace quench::tflite {
namespace {

std::int64_t channel_axis(Layout layout, std::int64_t rank) {
  return layout == Layout::First && rank >= 3 ? 1 : rank - 1;
}

void read_softmax(Op& op) {
  const Layout layout = op.layout();
  ValueId x = op.in(0, layout);
  const double beta = op.real("beta");
  if (beta != 1 && beta != 0) x = op.make().node("Mul", {x, op.make().scalar(beta)});
  op.set(op.make().node("Softmax", {x}, {{"axis", channel_axis(layout, op.rank())}}), layout);
}

void read_log_softmax(Op& op) {
  const Layout layout = op.layout();
  const ValueId x = op.in(0, layout);
  op.set(op.make().node("LogSoftmax", {x}, {{"axis", channel_axis(layout, op.rank())}}), layout);
}

void read_l2_normalization(Op& op) {
  constexpr double kLeast = 1e-6;
  const Layout layout = op.layout();
  const ValueId x = op.in(0, layout);
  const ValueId length = op.make().reduce("ReduceL2", x, {channel_axis(layout, op.rank())}, true);
  const ValueId divisor = op.make().node("Max", {length, op.make().scalar(kLeast)});
  op.set_activated(op.make().node("Div", {x, divisor}), layout);
}

/// ONNX divides alpha by the number of channels that it sums over; TFLite does not.
void read_lrn(Op& op) {
  expect_image(op);
  const std::int64_t size = 2 * op.number("radius") + 1;
  const ValueId x = op.in(0, Layout::First);
  op.set(
      op.make().node("LRN", {x},
                     {{"size", size},
                      {"bias", static_cast<float>(op.real("bias"))},
                      {"alpha", static_cast<float>(op.real("alpha") * static_cast<double>(size))},
                      {"beta", static_cast<float>(op.real("beta"))}}),
      Layout::First);
}

constexpr auto kRows = std::to_array<OpRow>({
    {"SOFTMAX", 9, "beta:f", read_softmax},
    {"LOG_SOFTMAX", 0, "", read_log_softmax},
    {"L2_NORMALIZATION", 12, "fused:b", read_l2_normalization},
    {"LOCAL_RESPONSE_NORMALIZATION", 13, "radius:i bias:f alpha:f beta:f", read_lrn},
});

}  // namespace

std::span<const OpRow> norm_rows() { return kRows; }

}  // namespace quench::tflite
