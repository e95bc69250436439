// SPDX-License-Identifier: Apache-2.0
// The first and the last values of a model.
#pragma once

#include "quench/graph.h"

namespace quench::plan {

/// By value: whether the model reads it, gives it, or its last layers read it.
std::vector<bool> edge_values(const Graph& graph, const Uses& uses);

}  // namespace quench::plan
