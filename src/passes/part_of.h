// SPDX-License-Identifier: Apache-2.0
// The part of a model that computes certain values.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::passes {

/// Everything a node reads, also in graphs inside it.
std::vector<ValueId> values_read(const Graph& graph, const Node& node);
/// The model with `values`, which must be in its graph, as outputs and without the nodes that they
/// do not need. The values `from`, if any, become its inputs.
Model part_of(const Model& model, const std::vector<std::string>& values,
              const std::vector<std::string>& from = {});

}  // namespace quench::passes
