// SPDX-License-Identifier: Apache-2.0
// Per-sample scores of a metric: they can be stored, compared sample by sample, and folded.
#pragma once

#include <string>
#include <vector>

#include "analyze/eval_data.h"
#include "quench/metrics.h"

namespace quench::analyze {

/// What one sample gave.
struct SampleScore {
  double metric = 0;
  double signal = 0;  ///< sum of squares of the float model's outputs
  double noise = 0;   ///< sum of squares of the difference from it
};

/// The outputs that a metric looks at, and how its sample values make one number.
class Scorer {
 public:
  /// Throws Error(Usage) for an unknown metric. `outputs` are the model's float outputs: a metric
  /// with labels looks at the first, one against the float model at all.
  Scorer(std::string metric, std::vector<std::string> outputs);

  const std::string& metric() const noexcept { return metric_; }
  bool needs_labels() const noexcept { return needs_labels_; }
  bool higher_is_better() const noexcept { return higher_is_better_; }
  const std::vector<std::string>& outputs() const noexcept { return outputs_; }
  /// Whether values are percentages of samples, for confidence intervals.
  bool is_share() const noexcept;

  /// Appends one score for each real sample of a batch.
  void add(const EvalBatch& batch, const TensorMap& actual, const TensorMap& expected,
           std::vector<SampleScore>& scores) const;
  double value(const std::vector<SampleScore>& scores) const;
  static double sqnr(const std::vector<SampleScore>& scores);
  /// Whether a layer with score `a` (and SQNR `a_sqnr`) is worse than one with `b`.
  bool worse(double a, double a_sqnr, double b, double b_sqnr) const;

 private:
  SampleScore score(const EvalBatch& batch, std::int64_t index, const TensorMap& actual,
                    const TensorMap& expected) const;

  std::string metric_;
  std::vector<std::string> outputs_;
  bool needs_labels_ = false;
  bool higher_is_better_ = true;
};

}  // namespace quench::analyze
