// SPDX-License-Identifier: Apache-2.0
// The part of a model that computes certain values.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::passes {

/// The model with `values`, which must be in its graph, as outputs and without the nodes that they
/// do not need.
Model part_of(const Model& model, const std::vector<std::string>& values);

}  // namespace quench::passes
