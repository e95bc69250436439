// SPDX-License-Identifier: Apache-2.0
// The state of a quantisation between its steps, and how it reads samples.
#pragma once

#include <memory>

#include "quench/quantize.h"
#include "tune/layer_means.h"

namespace quench {

/// Which samples calibrate and which judge: the first ones, and those behind them.
struct Split {
  std::int64_t calibrate = 0;
  std::int64_t judge = 0;
};

/// The state of one job between its steps.
struct Job {
  Model unfolded;      ///< as it was read, with the wanted input shapes
  std::string origin;  ///< fingerprint of the model as it was read
  Model model;         ///< prepared: what the plan speaks of
  QuantPlan plan;
  StatisticMap statistics;
  tune::LayerMeans means;  ///< of the first samples; empty where no pass was made
  QuantSolution solution;
  std::unique_ptr<SampleSource> source;
  Split parts;
};

std::vector<Value> model_inputs(const Graph& graph);
/// How many samples a run takes at least: the batch of a model that fixes it, else one.
std::int64_t run_size(const SampleSource& source, const std::vector<Value>& inputs);
/// Samples [first, first + count).
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// Samples in runs of at most `most`, or of the size that the model fixes. Where samples have
/// different shapes, a run ends before one of another shape.
std::vector<TensorMap> read_runs(SampleSource& source, const std::vector<Value>& inputs,
                                 SampleRange samples, std::int64_t most);
std::vector<TensorMap> read_runs(const Job& job, SampleRange samples, std::int64_t most);

}  // namespace quench
