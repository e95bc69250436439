// SPDX-License-Identifier: Apache-2.0
// HardSigmoid on integers: where its input's scale starts at the gate's foot, it is a Clip.
#pragma once

#include "quench/plan.h"

namespace quench::lower {

/// Puts the input of each HardSigmoid that a plan noted on a scale whose lowest step is where the
/// gate opens, and the gate on the same steps: neither loses anything by it. Left as it was where
/// the input's steps would grow by more than a quarter.
void tie_hard_gates(const Graph& graph, const QuantPlan& plan, QuantSolution& solution);

/// The highest step of an open gate, when HardSigmoid from `x` to `gate` is no more than a Clip of
/// the integers at it; nothing otherwise.
std::optional<std::int64_t> clip_of_gate(const Node& node, const QuantParams& x,
                                         const QuantParams& gate);

}  // namespace quench::lower
