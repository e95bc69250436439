// SPDX-License-Identifier: Apache-2.0
// The door to training: what it takes, and what it gives back. Nothing here knows libtorch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "evaluate/samples.h"
#include "quench/context.h"
#include "quench/plan.h"
#include "quench/training.h"
#include "quench/training_report.h"

namespace quench::qat {

/// With fewer samples their mean gradient is off by more than weights may follow: rates are lower,
/// and learning only how weights are rounded keeps more.
constexpr std::int64_t kEnoughSamples = 500;

/// Batch normalisation that was folded into a layer.
struct FoldedNorm {
  std::string layer;  ///< its `output_name`
  std::vector<float> scale;
  std::vector<float> shift;
  std::vector<float> mean;
  std::vector<float> variance;
  double epsilon = 1e-5;
};

/// What is trained, and with what.
struct Request {
  const Model& teacher;  ///< float: its outputs are the targets where there are no labels
  const Model& start;    ///< float: the weights to begin with
  const QuantPlan& plan;
  const QuantSolution& solution;  ///< the scales to begin with
  const TrainingOptions& options;
  std::vector<FoldedNorm> norms;       ///< that go on with their statistics for a while
  const evaluation::Samples& samples;  ///< the calibration set is trained with
  const Context& context;
  bool by_labels = false;  ///< cross-entropy with the samples' labels; else the teacher's outputs
  std::string origin;      ///< of the model and the settings: a checkpoint of another is refused
  /// How good a float model with these scales is when it is written; greater is better. Empty:
  /// nothing to validate with.
  std::function<double(const Model& model, const QuantSolution& solution)> validate;
  std::string score;  ///< what that number is called
};

/// The model that validated best.
struct Result {
  Model model;
  QuantSolution solution;
  TrainingReport report;
};

/// Trains the whole model. Errors: no layer to train, operators without gradient (by name), fewer
/// samples than a batch, labels that do not fit, a loss that is not a number (with step and layer).
Result train(const Request& request);
/// Learns how weights are rounded, from the layers' own inputs and outputs.
Result reconstruct(const Request& request);

/// The symbols of the engine module.
using TrainFunction = Result (*)(const Request&);

}  // namespace quench::qat
