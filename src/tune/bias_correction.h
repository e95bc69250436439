// SPDX-License-Identifier: Apache-2.0
// Moves each layer's bias so that its quantised output has the mean of the float one.
#pragma once

#include <vector>

#include "quench/plan.h"
#include "quench/session.h"

namespace quench::tune {

/// Full bias correction: layers in order, each seeing the quantised and already corrected layers
/// before it. `samples` is one batch of inputs. Changes the biases of `model` (adding one where a
/// layer has none) and returns how many layers were corrected.
std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           const TensorMap& samples, const Context& context);

}  // namespace quench::tune
