// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a model that are integers.
#pragma once

#include "retarget/raise.h"

namespace quench::retargeting {

/// What the inputs and outputs of a quantised model could be on integers: those that a
/// QuantizeLinear reads, perhaps behind moves, and those that a DequantizeLinear makes.
std::vector<IntegerEdge> find_edges(const Graph& graph);
/// Gives a model that was lowered from a raised one its integer inputs and outputs back. Where the
/// target has the same integers for them, nothing stands between.
void restore_edges(Model& model, const std::vector<IntegerEdge>& edges);
/// Takes out those of the activations, given by the name of their result, that the scale behind
/// them does the work of again. Returns how many stay.
std::size_t drop_idle_activations(Model& model, const std::set<std::string>& results);
/// A model with integer inputs and outputs that takes and gives what these stand for, to be held
/// against another.
Model with_float_edges(Model model, const std::vector<IntegerEdge>& edges);

}  // namespace quench::retargeting
