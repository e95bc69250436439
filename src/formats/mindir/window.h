// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools of MindIR share: kernels that slide over height and width.
#pragma once

#include "formats/mindir/op.h"

namespace quench::mindir {

/// As ONNX has it: sizes outer first, pads at the begin before those at the end.
struct Window {
  Ints kernel, strides, dilations, pads;
  bool same = false;  ///< pads are found while it runs
  bool last = false;  ///< channels are the last dimension
};

/// `strides` is what the operator calls them. Arguments of pools may stand behind the input.
Window window_of(Op& op, std::string_view strides, bool positional = false);
NodeAttributes attributes_of(const Window& window);
/// The image with channels first, and the result as the operator gives it.
ValueId image_in(Op& op, const Window& window);
void set_image(Op& op, const Window& window, ValueId value);
/// The word or number of a padding: 0 pad, 1 same, 2 valid.
std::int64_t pad_mode(const Op& op, std::size_t position);

}  // namespace quench::mindir
