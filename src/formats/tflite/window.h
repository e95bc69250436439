// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: kernels that slide over height and width.
#pragma once

#include "formats/tflite/op.h"

namespace quench::tflite {

/// Height and width, in this order.
struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations = {1, 1};
};

/// The attributes of a Conv or a pool: TFLite's SAME and VALID as pads.
NodeAttributes window_attributes(const Op& op, const Window& window);
/// Strides from the options; they must be positive.
Ints strides_of(const Op& op);
/// Throws unless an input has four dimensions.
void expect_image(const Op& op, std::size_t input = 0);

}  // namespace quench::tflite
