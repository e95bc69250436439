// SPDX-License-Identifier: Apache-2.0
// MindIR's pools.
#include <array>

#include "base/format.h"
#include "formats/mindir/rows.h"
#include "formats/mindir/window.h"

namespace quench::mindir {
namespace {

ValueId pooled(Op& op, const Window& window, NodeAttributes attributes) {
  if (op.number("ceil_mode", 0) != 0 || op.number("round_mode", 0) == 1) {
    attributes.emplace_back("ceil_mode", std::int64_t{1});
  }
  return op.make().node(op.as(), {image_in(op, window)}, attributes);
}

void read_max(Op& op) {
  const Window window = window_of(op, "strides");
  set_image(op, window, pooled(op, window, attributes_of(window)));
}

/// Its second result, where the greatest stood, is not made.
void read_max_and_place(Op& op) {
  const Window window = window_of(op, "strides");
  op.set_all({pooled(op, window, attributes_of(window))});
}

void read_average(Op& op) {
  const Window window = window_of(op, "strides", true);
  NodeAttributes attributes = attributes_of(window);
  if (op.number("count_include_pad", 0) != 0) {
    attributes.emplace_back("count_include_pad", std::int64_t{1});
  }
  if (op.number("divisor_override", 0) != 0) {
    fail(ErrorKind::Unsupported, "it divides by a number of its own (divisor_override)");
  }
  set_image(op, window, pooled(op, window, attributes));
}

/// MindSpore Lite's: over the whole image, or as the others, then an activation.
void read_fusion(Op& op) {
  const bool average = op.as() == "AveragePool";
  if (op.number("global", 0) != 0) {
    Window window;
    window.last = op.number("format", 0) == 1;
    const ValueId x = image_in(op, window);
    const ValueId y = op.make().node(average ? "GlobalAveragePool" : "GlobalMaxPool", {x});
    return set_image(op, window, op.activated(y));
  }
  const Window window = window_of(op, "strides");
  set_image(op, window, op.activated(pooled(op, window, attributes_of(window))));
}

void read_adaptive(Op& op) {
  const Ints size = op.need_ints("output_size", 1);
  if (size != Ints{1, 1} && size != Ints{1}) {
    fail(ErrorKind::Unsupported, "it pools to {}, but only to 1x1 is read", to_string(size));
  }
  op.set(op.make().node(op.as(), {op.in(0)}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"MaxPool", read_max, "MaxPool"},
    {"MaxPool3D", read_max, "MaxPool"},
    {"MaxPool3DWithArgmax", read_max_and_place, "MaxPool"},
    {"MaxPoolWithArgmaxV2", read_max_and_place, "MaxPool"},
    {"AvgPool", read_average, "AveragePool"},
    {"AvgPool3D", read_average, "AveragePool"},
    {"AvgPoolFusion", read_fusion, "AveragePool"},
    {"MaxPoolFusion", read_fusion, "MaxPool"},
    {"AdaptiveAvgPool2D", read_adaptive, "GlobalAveragePool"},
    {"AdaptiveMaxPool2D", read_adaptive, "GlobalMaxPool"},
});

}  // namespace

std::span<const OpRow> pool_rows() { return kRows; }

}  // namespace quench::mindir
