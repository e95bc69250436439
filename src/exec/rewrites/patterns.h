// SPDX-License-Identifier: Apache-2.0
// Patterns that exporters write out in small operators; one function each, called with the node
// that makes the pattern's result.
#pragma once

#include "exec/rewrites/rewrite.h"
#include "passes/match.h"

namespace quench::exec::rewrites {

/// x * Sigmoid(x), x * HardSigmoid(x), x * Clip(x + 3, 0, 6) / 6, both forms of Gelu.
bool fuse_gate(Rewriter& rewriter, NodeId root);
/// (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis.
bool fuse_layer_norm(Rewriter& rewriter, NodeId root);
/// Softmax over the last axis of x times a number, plus a mask.
bool fuse_softmax(Rewriter& rewriter, NodeId root);
/// Rows of an 8-bit table times their scales.
bool fuse_gather_rows(Rewriter& rewriter, NodeId root);
/// Clip from zero without an upper bound.
bool fuse_relu(Rewriter& rewriter, NodeId root);

}  // namespace quench::exec::rewrites
