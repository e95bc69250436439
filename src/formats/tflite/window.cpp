// SPDX-License-Identifier: Apache-2.0
// Pads of sliding kernels.
#include "formats/tflite/window.h"

#include <algorithm>

#include "base/format.h"

namespace quench::tflite {

void expect_image(const Op& op, std::size_t input) {
  if (op.rank(input) == 4) return;
  fail(ErrorKind::BadModel, "'{}' has {} dimensions, expected 4 (batch, height, width, channels)",
       op.in_item(input).name, op.rank(input));
}

Ints strides_of(const Op& op) {
  const Ints strides{op.number("stride_h"), op.number("stride_w")};
  if (strides[0] <= 0 || strides[1] <= 0) {
    fail(ErrorKind::BadModel, "its strides are {} and {}", strides[0], strides[1]);
  }
  return strides;
}

NodeAttributes window_attributes(const Op& op, const Window& window) {
  constexpr std::int64_t kSame = 0;
  constexpr std::int64_t kMost = 1 << 16;
  NodeAttributes result{{"kernel_shape", window.kernel}, {"strides", window.strides}};
  if (window.dilations != Ints{1, 1}) result.emplace_back("dilations", window.dilations);
  Ints pads(4, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t step = window.strides[i];
    if (window.kernel[i] <= 0 || window.kernel[i] > kMost || window.dilations[i] <= 0 ||
        window.dilations[i] > kMost || step > kMost) {
      fail(ErrorKind::BadModel, "its kernel is {} with dilation {} and stride {}", window.kernel[i],
           window.dilations[i], step);
    }
    if (op.number("padding") != kSame) continue;
    const std::int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t size = op.in_item(0).shape[i + 1];
    if (size < 0 && step != 1) {
      result.emplace_back("auto_pad", std::string("SAME_UPPER"));
      return result;
    }
    const std::int64_t steps = size < 0 ? 0 : (size + step - 1) / step;
    const std::int64_t total =
        step == 1 ? reach - 1 : std::max<std::int64_t>((steps - 1) * step + reach - size, 0);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
  }
  result.emplace_back("pads", pads);
  return result;
}

}  // namespace quench::tflite
