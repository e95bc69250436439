// SPDX-License-Identifier: Apache-2.0
// The decision for every node and value of a graph, and the grids found for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quench/model.h"
#include "quench/quant.h"

namespace quench {

/// What happens to an activation.
struct ValuePlan {
  enum class Kind {
    Observed,    ///< its own grid, from statistics
    SharedWith,  ///< the grid of value `source`: nodes between them only move elements
    Fixed,       ///< a grid that is known without data (softmax outputs)
    Float,       ///< stays as it is; `reason` says why
  };
  Kind kind = Kind::Float;
  QuantSpec spec;
  Range fixed;
  std::string source;
  std::string reason;
  /// An activation behind the node that makes it (Relu, Clip): a grid inside these bounds lets the
  /// runtime drop that activation.
  std::optional<Range> bounds;
  /// Its readers, a HardSigmoid and the Mul behind it, give the same for everything below.
  std::optional<double> floor;
};

/// What happens to a constant input of a node.
struct WeightPlan {
  NodeId node = -1;
  std::size_t input = 0;
  QuantSpec spec;
};

/// What happens to a node.
struct NodePlan {
  enum class Kind {
    Integer,      ///< the target has an integer kernel, and its inputs and outputs are quantised
    PassThrough,  ///< only moves elements: works on integers as it is
    Float,        ///< stays in float; `reason` says why
  };
  Kind kind = Kind::Float;
  std::string reason;
  bool quantize_bias =
      false;                ///< input 2, if there is one, becomes int32 with scale input x weight
  NodeId absorbed_by = -1;  ///< an activation: the node whose integer kernel does its work
};

/// The decision for every node and value of a graph, made before any data are seen.
struct QuantPlan {
  std::string target;
  std::string isa;                          ///< "avx2": sums of two products must fit in 16 bits
  bool integer_clip = false;                ///< the target has a Clip of integers
  std::vector<NodePlan> nodes;              ///< by node id
  std::map<std::string, ValuePlan> values;  ///< activations by name; absent: Float
  std::vector<WeightPlan> weights;
};

/// Grids found for a plan.
struct QuantSolution {
  std::map<std::string, QuantParams> values;  ///< by value name, SharedWith resolved
  /// By (node, input) of QuantPlan::weights.
  std::map<std::pair<NodeId, std::size_t>, QuantParams> weights;
};

}  // namespace quench
