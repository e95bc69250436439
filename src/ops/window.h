// SPDX-License-Identifier: Apache-2.0
// The attributes that convolutions and pools share, checked.
#pragma once

#include <string>

#include "ops/context.h"

namespace quench::ops {

/// A window that slides over the spatial dimensions.
struct Window {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads;  ///< all begins, then all ends
  std::string auto_pad;
  bool ceil_mode = false;

  std::size_t rank() const noexcept { return kernel.size(); }
};

/// Reads kernel_shape (unless `kernel` gives it), strides, dilations, pads, auto_pad and ceil_mode;
/// throws Error(BadModel) when they do not fit together.
Window read_window(const Node& node, std::vector<std::int64_t> kernel);
/// The number of places the window takes along spatial dimension `index`.
Dim window_places(const Window& window, std::size_t index, const Dim& size);

}  // namespace quench::ops
