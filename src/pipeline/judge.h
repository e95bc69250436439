// SPDX-License-Identifier: Apache-2.0
// Held-out samples that say which of two quantised models is nearer to the float one.
#pragma once

#include <span>

#include "pipeline/quantize_job.h"

namespace quench {

/// The SQNR of the worst output in dB.
double worst_sqnr(const std::vector<OutputScores>& outputs);

/// The float model's outputs on the held-out samples of a job, to hold others against.
class Judge {
 public:
  Judge(const Job& job, const Context& context);

  /// Whether there is anything to judge by.
  bool able() const { return !runs_.empty() && !outputs_.empty(); }
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
};

}  // namespace quench
