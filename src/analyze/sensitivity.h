// SPDX-License-Identifier: Apache-2.0
// Quantises one layer at a time, or all but one, and scores the result.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyze/simulator.h"
#include "evaluate/evaluator.h"
#include "quench/analysis.h"
#include "quench/session.h"

namespace quench::analyze {

using evaluation::SampleMetric;
using evaluation::SampleScore;

/// Scores of the samples that each layer has been scored by, in their order.
using Scores = std::map<std::string, std::vector<SampleScore>>;

/// What the ways below work on.
struct SensitivityJob {
  Simulator& simulator;
  evaluation::Evaluator& evaluator;
  const SampleMetric& metric;
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

/// What `score_layers` works on.
struct LayerScoring {
  const std::vector<Layer>& layers;
  Scores& scores;
  const Context& context;
  std::function<void()> checkpoint;  ///< called when `scores` have grown; may be empty
};
/// Scores every layer that `scores` do not have yet, each on whichever rank is free.
void score_layers(const LayerScoring& job, const std::function<bool(std::size_t)>& has,
                  const std::function<std::vector<SampleScore>(std::size_t)>& score);

/// Layers in the order that users read: the one that costs most first.
std::vector<LayerSensitivity> rank(const std::vector<Layer>& layers, const SampleMetric& metric,
                                   const Scores& scores, bool reverse);

}  // namespace quench::analyze
