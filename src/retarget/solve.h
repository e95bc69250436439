// SPDX-License-Identifier: Apache-2.0
// The parameters that a plan wants, from those that another tool chose.
#pragma once

#include <set>

#include "quench/plan.h"
#include "quench/statistics.h"
#include "retarget/raise.h"
#include "retarget/ranges.h"

namespace quench::retargeting {

/// Where the scale of a value of the plan comes from.
enum class Source { Kept, Neighbours, Data, Fixed, Nowhere };

/// For one plan of the prepared form of a raised model.
class Solver {
 public:
  Solver(const Model& prepared, const QuantPlan& plan, const Raised& raised);

  /// Values with a scale of their own whose range neither the model nor its neighbours tell.
  std::vector<std::string> unknown() const;
  /// Those, and the ones of which the neighbours tell too much: what data are good for.
  std::vector<std::string> to_observe() const;
  Source source(const std::string& value) const;

  /// Every scale of the plan; statistics, where there are any, win over neighbours. Throws
  /// Error(Internal) for a value that is unknown and not among them.
  QuantSolution solve(const StatisticMap& statistics) const;

 private:
  std::optional<QuantParams> given(const std::string& value) const;
  QuantParams weight(const WeightPlan& planned) const;

  const Model& model_;
  const QuantPlan& plan_;
  const Raised& raised_;
  Ranges before_;  ///< of the raised model, before anything was folded
  Ranges ranges_;
  std::map<std::string, std::vector<std::string>> sharing_;  ///< by the value whose scale it is
};

/// The same integers for a spec where it can hold them, moved by the difference of the types; else
/// the scale that covers the same range.
QuantParams fitted(const QuantSpec& wanted, const QuantParams& given);

/// A float constant that was integers. Preparing may have multiplied its channels by numbers, which
/// its scales then are, too; nothing where it is none or was changed otherwise.
std::optional<QuantParams> weight_params(const Model& prepared, const Node& node, std::size_t input,
                                         const Raised& raised);

}  // namespace quench::retargeting
