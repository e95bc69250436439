// SPDX-License-Identifier: Apache-2.0
// How the models of an analysis are evaluated: by a metric on samples, or by a function.
#pragma once

#include <optional>

#include "evaluate/evaluator.h"
#include "quench/analyze.h"

namespace quench::analyze {

/// How good a model is: by a metric on samples, or by a function.
struct Evaluation {
  std::optional<evaluation::Evaluator> evaluator;  ///< nothing where a function evaluates
  std::optional<evaluation::SampleMetric> metric;
  EvalFunction eval;  ///< the caller's function, or the metric command
};

/// Opens the samples that `options` name, with `model` as the float model.
void open_evaluation(Evaluation& opened, const Model& model, const AnalyzeOptions& options,
                     const Context& context);

}  // namespace quench::analyze
