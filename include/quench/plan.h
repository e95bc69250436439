// SPDX-License-Identifier: Apache-2.0
// The decision for every node and value of a graph, and the quantisation parameters found for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quench/model.h"
#include "quench/quant.h"

namespace quench {

/// What plans call a node: the name of its first output. No other node of the graph makes it, and
/// it stays when other nodes come and go. Empty for a node that makes nothing.
const std::string& output_name(const Graph& graph, const Node& node);
/// The node that is called so; throws Error(Internal) when there is none.
const Node& node_called(const Graph& graph, std::string_view output);
Node& node_called(Graph& graph, std::string_view output);

/// What happens to an activation.
struct ValuePlan {
  enum class Kind {
    Observed,    ///< its own parameters, from statistics
    SharedWith,  ///< the parameters of value `source`: nodes between only move elements
    Fixed,       ///< parameters that are known without data (softmax outputs)
    Float,       ///< stays as it is; `reason` says why
  };
  Kind kind = Kind::Float;
  QuantSpec spec;
  Range fixed;
  std::string source;
  std::string reason;
  /// An activation behind the node that makes it (Relu, Clip): a scale that stays inside these
  /// bounds lets the runtime drop that activation.
  std::optional<Range> bounds;
  /// Its readers, a HardSigmoid and the Mul behind it, give the same for everything below.
  std::optional<double> floor;
};

/// A constant input of a node: the node's `output_name`, and which input.
using WeightKey = std::pair<std::string, std::size_t>;

/// What happens to a constant input of a node.
struct WeightPlan {
  std::string node;  ///< its `output_name`
  std::size_t input = 0;
  QuantSpec spec;

  WeightKey key() const { return {node, input}; }
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
  /// Input 2, if there is one, becomes int32 with scale input x weight.
  bool quantize_bias = false;
  /// An activation: the `output_name` of the node whose integer kernel does its work.
  std::string absorbed_by;
};

/// The decision for every node and value of a graph, made before any data are seen. Nodes are
/// called by their `output_name`, so that a plan holds while nodes are added and removed.
struct QuantPlan {
  std::string target;
  std::string isa;                          ///< "avx2": sums of two products must fit in 16 bits
  bool integer_clip = false;                ///< the target has a Clip of integers
  bool round_for_layers_only = false;       ///< as the configuration has it
  std::map<std::string, NodePlan> nodes;    ///< by `output_name`
  std::map<std::string, ValuePlan> values;  ///< activations by name; absent: Float
  std::vector<WeightPlan> weights;

  bool any_integers() const;
  /// In float for a node that was added since.
  const NodePlan& of(const Graph& graph, const Node& node) const;
  /// The name of what a node hands on: its output, or that of the activation that it absorbs.
  std::string result_of(const std::string& node) const;
};

/// Scales and zero points found for a plan.
struct QuantSolution {
  std::map<std::string, QuantParams> values;  ///< by value name, SharedWith resolved
  std::map<WeightKey, QuantParams> weights;
};

}  // namespace quench
