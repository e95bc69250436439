// SPDX-License-Identifier: Apache-2.0
// The constants of a graph that weight-only and dynamic quantisation are about.
#pragma once

#include <string>
#include <vector>

#include "quench/quant_config.h"

namespace quench::plan {

/// A constant input of a node that is worth storing as integers. The node may be a Transpose: the
/// axes are those of its input that the product behind it has them along.
struct WeightSite {
  std::string node;  ///< its `output_name`
  std::size_t input = 0;
  int channel_axis = -1;  ///< one scale for each of its indices; -1: none
  int sum_axis = -1;  ///< of a matrix product: the axis that is summed over, to be cut in blocks

  /// In a graph that has the node, whatever else was done to it.
  const Node& node_in(const Graph& graph) const;
  ValueId value_in(const Graph& graph) const { return node_in(graph).input(input); }
  const Tensor& weight_in(const Graph& graph) const { return *graph.constant(value_in(graph)); }
};

/// A node that has such a constant and keeps it in float.
struct WeightRefusal {
  std::string node;  ///< its `output_name`
  std::string reason;
};

struct WeightSites {
  std::vector<WeightSite> sites;
  std::vector<WeightRefusal> refusals;
};

/// Which weights are left out.
struct WeightFilter {
  QuantConfig config;            ///< `skip_quant_node`, `quantizable_op_type` and so on
  std::int64_t min_size = 0;     ///< weights with no more elements
  std::int64_t min_channel = 0;  ///< convolutions with no more channels
  bool body = false;             ///< a graph inside a node: names may be those of another graph
};

/// Float constants of two dimensions or more that operators read as a weight (ops::WeightKind).
/// Throws Error(BadConfig) for a name that is not in the graph.
WeightSites find_weights(const Graph& graph, const WeightFilter& filter);

}  // namespace quench::plan
