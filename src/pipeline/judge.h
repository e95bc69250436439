// SPDX-License-Identifier: Apache-2.0
// Held-out samples that say which of two quantised models is nearer to the float one.
#pragma once

#include <span>

#include "metrics/peaks.h"
#include "pipeline/telling_samples.h"

namespace quench {

/// The SQNR of the worst output in dB.
double worst_sqnr(const std::vector<OutputScores>& outputs);

/// The float model's outputs on samples of a job, to hold others against.
class Judge {
 public:
  /// By the samples held out.
  Judge(const Job& job, const Context& context);
  Judge(const Job& job, const std::vector<SampleRange>& samples, const Context& context);

  /// Whether there is anything to judge by.
  bool able() const { return !runs_.empty() && !outputs_.empty(); }
  /// From now on `scores` hold the `peak_sqnr` of outputs that have peaks, too.
  void watch_peaks();
  /// Cosine, SQNR and agreement of each output; empty when not able.
  std::vector<OutputScores> scores(const Model& model) const;
  /// The SQNR of the worst output in dB.
  double sqnr(const Model& model) const { return worst_sqnr(scores(model)); }
  /// The inputs of all runs.
  std::span<const TensorMap> runs() const { return runs_; }
  /// The inputs of some of the runs.
  std::span<const TensorMap> few_runs() const;

 private:
  const Context& context_;
  std::vector<TensorMap> runs_;
  std::vector<TensorMap> expected_;
  std::vector<std::string> outputs_;
  std::map<std::string, metrics::Peaks> peaks_;
};

}  // namespace quench
