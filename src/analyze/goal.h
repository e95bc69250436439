// SPDX-License-Identifier: Apache-2.0
// A number that a model must come to, and how near models are to it.
#pragma once

#include "analyze/evaluation.h"
#include "analyze/simulator.h"
#include "analyze/target.h"

namespace quench::analyze {

/// Evaluates models against a number that must be met.
class Goal {
 public:
  /// `simulator` makes the models of choices. All must outlive it.
  Goal(Evaluation& evaluation, Simulator& simulator, double at_least, const Context& context);

  bool higher_is_better() const {
    return evaluation_.eval || evaluation_.metric->info().higher_is_better;
  }
  bool is_share() const {
    return evaluation_.metric && evaluation_.metric->info().gather == Gather::Share;
  }
  bool enough(double value) const {
    return higher_is_better() ? value >= at_least_ : value <= at_least_;
  }
  /// Of the float model.
  double float_value() const;

  Verdict evaluate(const Choice& choice, Effort effort);
  Verdict evaluate(const Model& model, Effort effort);
  /// Keeps what a choice came to, for the report.
  void note(const Choice& choice, const Verdict& verdict);
  const std::vector<TargetTrial>& trials() const noexcept { return trials_; }

 private:
  void sort_samples();
  double best_possible(const std::vector<evaluation::SampleScore>& seen) const;

  Evaluation& evaluation_;
  Simulator& simulator_;
  double at_least_;
  const Context& context_;
  std::vector<evaluation::SampleScore> in_float_;
  std::int64_t asked_ = 0;
  bool sorted_ = false;
  std::vector<TargetTrial> trials_;
};

}  // namespace quench::analyze
