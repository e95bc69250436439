// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights are split over the processes that run a model together, found by the
// collective operators (com.microsoft AllReduce and AllGather) that join what each process has.
#pragma once

#include <map>
#include <set>
#include <string>

#include "quench/graph.h"

namespace quench::passes {

/// As PaddleSlim and Megatron call them.
inline constexpr const char* kColumnParallel = "ColumnParallelLinear";
inline constexpr const char* kRowParallel = "RowParallelLinear";

/// Sums or joins what the processes of a tensor-parallel model have.
bool is_collective(const Node& node);

/// The linear layers that are split: by rows (inputs) where an AllReduce sums their results, by
/// columns (outputs) where what they make is split up to such a layer or an AllGather. It must
/// not outlive the graph, or changes of it.
class ParallelLayers {
 public:
  explicit ParallelLayers(const Graph& graph);

  bool empty() const noexcept { return kinds_.empty(); }
  /// kColumnParallel, kRowParallel or "".
  const std::string& kind(const Node& node) const;
  /// The names of values of which each process has a part.
  std::set<std::string> split_values() const;
  /// The axis along which the weight of a layer is split; -1: it is not.
  int split_axis(const Node& node, const Shape& weight) const;

 private:
  const Graph& graph_;
  std::map<ValueId, std::string> kinds_;  ///< by the value that the layer makes
};

}  // namespace quench::passes
