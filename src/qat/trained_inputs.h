// SPDX-License-Identifier: Apache-2.0
// Which constants of a graph training changes.
#pragma once

#include <vector>

#include "quench/graph.h"

namespace quench::qat {

/// The inputs of a node that are float constants and learned: weights, biases, scales and shifts of
/// normalisations, and constants of more than one element that Add and its like broadcast.
std::vector<std::size_t> trained_inputs(const Graph& graph, const Node& node);

}  // namespace quench::qat
