// SPDX-License-Identifier: Apache-2.0
// Ranges of values that had no scale, from those of their neighbours.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quench/model.h"
#include "quench/quant.h"

namespace quench::retargeting {

/// A range, and how near it is to what calibration would have found.
struct KnownRange {
  Range range;
  /// Nothing lies outside of it, but it may be up to twice as wide as it need be.
  bool loose = false;
};

/// What can be told of every value of a graph without data. Forward: pools, moves and joins keep
/// the range of what they read, clamps cut it, Sigmoid and its like have bounds of their own, sums
/// products and normalisation have the bounds of interval arithmetic. Backward: where a sum and one
/// of its terms are known, the other term cannot leave their difference without the sum being cut
/// anyway; and what a Sigmoid or HardSwish reads need not reach further than where these are flat.
class Ranges {
 public:
  /// `more` may tell of another form of the model, in which values stood that are folded here.
  Ranges(const Model& model, const std::map<std::string, QuantParams>& known,
         const Ranges* more = nullptr);

  /// Nothing where it cannot be told.
  std::optional<KnownRange> of(const std::string& value) const;

 private:
  using Maybe = std::optional<KnownRange>;
  Maybe& at(ValueId id) { return found_[static_cast<std::size_t>(id)]; }
  const Maybe& at(ValueId id) const { return found_[static_cast<std::size_t>(id)]; }
  void forward();
  void backward();
  Maybe result(const Node& node) const;
  Maybe hull(const Node& node, std::size_t count) const;
  Maybe function(const Node& node) const;
  Maybe normalized(const Node& node) const;
  Maybe sum(const Node& node) const;
  Maybe product(const Node& node) const;
  Maybe wanted(const Node& reader, ValueId value) const;
  Maybe other_term(const Node& add, ValueId term) const;

  const Model& model_;
  const Graph& graph_;
  Uses uses_;
  std::vector<Maybe> found_;  ///< by value
};

}  // namespace quench::retargeting
