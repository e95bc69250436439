// SPDX-License-Identifier: Apache-2.0
// Judges choices of quantised layers against a number that must be met.
#pragma once

#include "analyze/sensitivity.h"
#include "analyze/target.h"
#include "pipeline/analyze_setup.h"

namespace quench {

/// By the evaluation data, or by the caller's function.
class Jury {
 public:
  Jury(Analysis& analysis, double at_least, const Context& context);

  bool higher_is_better() const;
  bool enough(double value) const;
  double float_value();
  analyze::Verdict judge(const analyze::Choice& choice, analyze::Effort effort);
  /// The choice as it will be written. Where the model does what was judged before, `known` holds
  /// for it, and a batch is enough to see that.
  analyze::Verdict judge_written(const Model& model, const analyze::Choice& choice, double known);

 private:
  /// What the float model gives.
  void run_float();
  /// Puts the samples first that tell a bad model soonest.
  void sort_samples();
  /// What a share comes to if every sample that was not seen yet is a hit.
  double best_possible(const std::vector<analyze::SampleScore>& seen) const;
  analyze::Verdict judge_model(Model model, analyze::Effort effort);
  bool same_outputs(const Model& model, const analyze::Choice& choice);

  Analysis& analysis_;
  double at_least_;
  const Context& context_;
  std::vector<TensorMap> expected_;  ///< outputs of the float model, batch by batch
  std::vector<analyze::SampleScore> float_scores_;
  std::int64_t asked_ = 0;
  bool sorted_ = false;
};

}  // namespace quench
