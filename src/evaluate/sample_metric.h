// SPDX-License-Identifier: Apache-2.0
// A metric sample by sample: values can be stored, compared sample by sample, and gathered.
#pragma once

#include <string>
#include <vector>

#include "evaluate/eval_data.h"
#include "quench/metrics.h"

namespace quench::evaluation {

/// What one sample gave.
struct SampleScore {
  double metric = 0;
  double signal = 0;  ///< sum of squares of the float model's outputs
  double noise = 0;   ///< sum of squares of the difference from it
};

/// SQNR over all samples, in dB.
double sqnr_of(const std::vector<SampleScore>& scores);

/// The outputs that a metric looks at, and how its sample values make one number.
class SampleMetric {
 public:
  /// Throws Error(Usage) for an unknown metric. `outputs` are the model's float outputs: a metric
  /// with labels looks at the first, one against the float model at all. One that can be held
  /// against `truths` is.
  SampleMetric(const std::string& metric, std::vector<std::string> outputs,
               std::shared_ptr<const Truths> truths = nullptr);

  std::string name() const { return std::string(info_.name); }
  const MetricInfo& info() const noexcept { return info_; }
  const std::vector<std::string>& outputs() const noexcept { return outputs_; }

  /// Appends one score for each sample of a batch.
  void add(const EvalBatch& batch, const TensorMap& actual, const TensorMap& expected,
           std::vector<SampleScore>& scores) const;
  double value(const std::vector<SampleScore>& scores) const;
  /// Whether a model with value `a` (and SQNR `a_sqnr`) is worse than one with `b`.
  bool worse(double a, double a_sqnr, double b, double b_sqnr) const;

 private:
  SampleScore score(const EvalBatch& batch, std::int64_t index, const TensorMap& actual,
                    const TensorMap& expected) const;

  MetricInfo info_;
  std::vector<std::string> outputs_;
  std::shared_ptr<const Truths> truths_;  ///< null: it is not held against any
};

}  // namespace quench::evaluation
