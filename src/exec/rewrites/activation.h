// SPDX-License-Identifier: Apache-2.0
// Activations as fused layers name them.
#pragma once

#include "exec/rewrites/rewrite.h"

namespace quench::exec::rewrites {

/// The attributes `activation`, `activation_alpha` and `activation_beta` of a fused layer.
struct Activation {
  std::string_view name;
  float alpha = 0;  ///< clip: least value; leaky_relu: slope; hard_sigmoid: its alpha
  float beta = 0;   ///< clip: greatest value; hard_sigmoid: its beta
};

/// What a node does to its one input; nothing when that is no activation of ours.
std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node);

}  // namespace quench::exec::rewrites
