// SPDX-License-Identifier: Apache-2.0
// Activations as fused layers name them.
#pragma once

#include "exec/rewrites/rewrite.h"
#include "ops/facts.h"

namespace quench::exec::rewrites {

/// The activation of a fused layer.
using Activation = ops::Epilogue;

/// What a node does to its one input; nothing when that is no activation of ours.
std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node);
/// Gives a fused node its activation, where there is one.
void put_activation(Node& node, const Activation& activation);

}  // namespace quench::exec::rewrites
