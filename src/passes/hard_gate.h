// SPDX-License-Identifier: Apache-2.0
// Gates that exporters write out with Clip.
#pragma once

#include "passes/match.h"

namespace quench::passes {

/// The constant bounds of a Clip, in order, from attributes or inputs; nothing when one is
/// computed.
std::optional<std::pair<float, float>> clip_bounds(const Rewriter& rewriter, const Node& clip);
/// A Mul or Div of a model that broadcasts as ONNX does since opset 7.
bool is_product(const Rewriter& rewriter, NodeId root);
/// Whether scale * x * gate is x * Clip(x + 3, 0, 6) / 6.
bool is_hard_swish(const Rewriter& rewriter, Matcher& match, double scale, ValueId x, ValueId gate);
/// Clip(x + 3, 0, 6) / 6, alone or as the factor of x, as HardSigmoid.
bool join_hard_gate(Rewriter& rewriter, NodeId root);

}  // namespace quench::passes
