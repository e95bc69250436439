// SPDX-License-Identifier: Apache-2.0
// Metrics collected for several outputs at once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quench/evaluate.h"
#include "quench/metrics.h"

namespace quench {

/// The metrics of one output.
class ScoreCard {
 public:
  /// Against `truths`, where there are any: what is added are then labels.
  ScoreCard(std::string output, const std::vector<std::string>& metrics,
            const CustomMetrics& custom = {}, std::shared_ptr<const Truths> truths = nullptr);
  /// The metrics that fit the output, told by the first of the reference's results.
  static ScoreCard fitting(std::string output);
  /// Throws Error(BadData) that names the output when the shapes differ.
  void add(const Tensor& actual, const Tensor& expected);
  OutputScores scores() const;
  const std::string& output() const noexcept { return output_; }

 private:
  std::string output_;
  std::map<std::string, std::unique_ptr<Metric>> metrics_;
  bool fitting_ = false;  ///< and not chosen yet
};

/// Metric names, told apart by what they are measured against.
struct MetricChoice {
  std::vector<std::string> with_labels;
  std::vector<std::string> with_reference;
  CustomMetrics custom_with_labels;
  CustomMetrics custom_with_reference;

  bool any_with_labels() const { return !with_labels.empty() || !custom_with_labels.empty(); }
};
/// Throws Error(Usage) with the nearest name when one of `names` is not in the list. A metric that
/// can be held against `truths` is.
MetricChoice sort_metrics(const std::vector<std::string>& names, const CustomMetrics& custom = {},
                          const Truths* truths = nullptr);

/// An output of the model under test and the one of the reference it is held against.
struct OutputPair {
  std::string actual;
  std::string expected;
};
/// Outputs with the same name, or, when no names agree, with the same place.
std::vector<OutputPair> pair_outputs(const std::vector<Value>& actual,
                                     const std::vector<Value>& expected, const std::string& only);

}  // namespace quench
