// SPDX-License-Identifier: Apache-2.0
// Moves each layer's bias so that its quantised output has the mean of the float one.
#pragma once

#include <set>

#include "tune/layer_means.h"

namespace quench::tune {

/// What full correction learns from: the inputs of some runs of a few samples, and the means of the
/// same samples, in the same order, in the float model.
struct CorrectionData {
  std::span<const TensorMap> runs;
  const LayerMeans& means;
};

/// Full bias correction: the fast one, and then layers in order, each seeing the quantised and
/// already corrected layers before it. Changes the biases of `model` (adding one where a layer has
/// none) and returns how many layers were corrected. The size of the runs matters little.
std::size_t correct_biases(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                           const CorrectionData& data, const Context& context);

/// Fast bias correction: from the error of each layer's weights and the mean of what it reads in
/// the float model. Layers do not wait for one another. `own` leaves out matrix products whose bias
/// is an Add behind them.
std::size_t correct_biases_fast(Model& model, const QuantPlan& plan, const QuantSolution& solution,
                                const LayerMeans& means, bool own = false);

/// The outputs of layers whose SQNR, quantised against float, is below `least` dB.
std::set<std::string> poor_layers(const Model& model, const Model& quantised, const QuantPlan& plan,
                                  std::span<const TensorMap> runs, double least,
                                  const Context& context);

}  // namespace quench::tune
