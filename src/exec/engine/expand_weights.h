// SPDX-License-Identifier: Apache-2.0
// Turns integer weights that float kernels read into floats, once.
#pragma once

#include "passes/pass.h"
#include "quench/graph.h"

namespace quench::exec {

/// Weights behind a DequantizeLinear whose readers get no other integers: the layer computes in
/// float. Where a reader's other inputs are dequantised activations, integer kernels want them as
/// they are. Constants of 4 and 2 bits, which the engine cannot hold, become bytes.
void expand_weights(Graph& graph, const passes::PassOptions& keep);

}  // namespace quench::exec
