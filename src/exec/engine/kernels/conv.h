// SPDX-License-Identifier: Apache-2.0
// What a convolution's attributes say.
#pragma once

#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/reference.h"

namespace quench::exec {

/// A convolution's attributes; `rank` counts its spatial axes.
struct ConvAttributes {
  Window window;
  std::int64_t groups = 1;
  std::size_t rank = 2;
};

/// The attributes, or the reason why they are refused. `weight` is the index of that input.
std::optional<ConvAttributes> conv_attributes(const OpContext& context, std::size_t weight,
                                              std::string& refusal);

/// Makes a window over one axis one over two, the first of size 1.
void pad_to_2d(Window& window);
/// What a convolution with weights [O, I, H, W] makes of an input [N, C, H, W].
Ints convolved_shape(const Window& window, at::IntArrayRef src, const Ints& weight);

}  // namespace quench::exec
