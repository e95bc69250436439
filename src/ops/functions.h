// SPDX-License-Identifier: Apache-2.0
// Inference through the functions that a model defines.
#pragma once

#include "ops/scope.h"

namespace quench::ops {

/// The function of the model that the node calls, or null.
const Function* find_function(const Inference& inference, const Node& node);
/// Infers a copy of the function's body with the node's input types and attributes.
void infer_call(Scope& scope, const Node& node, const Function& function);

}  // namespace quench::ops
