// SPDX-License-Identifier: Apache-2.0
// Moves each layer's bias so that its quantised output has the mean of the float one.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "quench/plan.h"
#include "quench/session.h"

namespace quench::tune {

/// Full bias correction: layers in order, each seeing the quantised and already corrected layers
/// before it. `runs` are the inputs of one run each: one large batch is best; a model that fixes
/// its batch takes several. Changes the biases of `model` (adding one where a layer has none) and
/// returns how many layers were corrected.
std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           std::span<const TensorMap> runs, const Context& context);

/// Fast bias correction: from the error of each layer's weights and the mean of what it reads in
/// the float model. Layers do not wait for one another.
std::size_t correct_biases_fast(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                                std::span<const TensorMap> runs, const Context& context);

/// The outputs of layers whose SQNR, quantised against float, is below `least` dB.
std::set<std::string> poor_layers(const Model& model, const Model& quantised, const QuantPlan& plan,
                                  std::span<const TensorMap> runs, double least,
                                  const Context& context);

}  // namespace quench::tune
