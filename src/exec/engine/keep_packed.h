// SPDX-License-Identifier: Apache-2.0
// Joins dequantised constants with the products that read them, so that they can stay packed.
#pragma once

#include "passes/pass.h"
#include "quench/graph.h"

namespace quench::exec {

/// A DequantizeLinear of a constant and the Conv, MatMul, Gemm or Gather that alone reads it become
/// one node OnTheFly: inputs are the other operand, integers, scale, zero point and what is added.
void keep_packed(Graph& graph, const passes::PassOptions& keep);

}  // namespace quench::exec
