// SPDX-License-Identifier: Apache-2.0
// Values whose channels can be scaled together without changing what a model computes.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "quench/model.h"

namespace quench::tune {

/// Values between layers, tied by nodes that commute with a positive scale (Relu, pools, Add of
/// two of them): dividing channel c of all of them by s[c] is undone in the layers around.
struct ScaleGroup {
  std::vector<ValueId> values;
  std::vector<NodeId> makers;   ///< layers: their output channels are divided
  std::vector<NodeId> readers;  ///< layers: their input channels are multiplied
  std::vector<NodeId> gates;    ///< HardSigmoid, Sigmoid: they read the value multiplied again
  /// Add nodes and which input is the constant: it is divided too.
  std::vector<std::pair<NodeId, std::size_t>> shifts;
  std::int64_t channels = 0;
  /// The upper bound of a Clip(0, bound) among the nodes: what is scaled must stay below it.
  double ceiling = std::numeric_limits<double>::infinity();
};

/// Every group of a model (types inferred) that has a layer on both sides.
std::vector<ScaleGroup> find_scale_groups(const Model& model);

}  // namespace quench::tune
