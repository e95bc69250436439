// SPDX-License-Identifier: Apache-2.0
// Quantises one layer at a time, or all but one, and scores the result.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyze/eval_data.h"
#include "analyze/score.h"
#include "analyze/simulator.h"
#include "quench/analysis.h"
#include "quench/session.h"

namespace quench::analyze {

/// Scores of the samples that each layer has been judged by, in their order.
using Scores = std::map<std::string, std::vector<SampleScore>>;

/// What the ways below work on.
struct SensitivityJob {
  Simulator& simulator;
  EvalData& data;
  const Scorer& scorer;
  const Context& context;
  Scores scores;                     ///< what an interrupted run left, then the result
  std::function<void()> checkpoint;  ///< called when `scores` have grown; may be empty
};

/// Float values once a batch, then each layer from where it lies.
void score_exactly(SensitivityJob& job);
/// A whole run of a whole model for each layer: what the others are measured against, and the way
/// for "all but one".
void score_plainly(SensitivityJob& job, bool reverse);
/// Few samples first; more only for layers of which it is not clear yet whether they are among the
/// `worst`.
void score_quickly(SensitivityJob& job, std::size_t worst);

/// Runs a model over all evaluation data; `expected` is by batch what the float model gave.
std::vector<SampleScore> score_model(Model model, SensitivityJob& job,
                                     const std::vector<TensorMap>& expected);
/// What the float model gives, by batch.
std::vector<TensorMap> float_outputs(SensitivityJob& job);

/// Layers in the order that users read: the one that costs most first.
std::vector<LayerSensitivity> rank(const std::vector<Layer>& layers, const Scorer& scorer,
                                   const Scores& scores, bool reverse);

}  // namespace quench::analyze
