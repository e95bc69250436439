// SPDX-License-Identifier: Apache-2.0
// Turns integer weights that float kernels read into floats, once.
#pragma once

#include <optional>

#include "passes/pass.h"
#include "quant/weight.h"
#include "quench/graph.h"

namespace quench::exec {

/// Weights behind a DequantizeLinear whose readers get no other integers: the layer computes in
/// float. Where a reader's other inputs are dequantised activations, integer kernels want them as
/// they are. Constants of 4 and 2 bits, which the engine cannot hold, become bytes, except
/// where a kernel keeps its weight packed.
void expand_weights(Graph& graph, const passes::PassOptions& keep);

/// A constant as the engine can hold it: elements of 4 and 2 bits become bytes.
Tensor in_whole_bytes(const Tensor& constant);
/// Whether every reader of a dequantised value computes in float.
bool read_in_float(const Graph& graph, const Uses& uses, ValueId id);
/// What a DequantizeLinear computes, if all of it is constant and of a kind that we write.
std::optional<quant::QuantWeight> weight_of(const Graph& graph, const Node& node);

}  // namespace quench::exec
