// SPDX-License-Identifier: Apache-2.0
// Layers that take the nodes behind them along, and activations as fused layers name them.
#pragma once

#include "exec/rewrites/rewrite.h"
#include "ops/facts.h"

namespace quench::exec::rewrites {

/// The activation of a fused layer.
using Activation = ops::Epilogue;

/// What a node does to its one input; nothing when that is no activation of ours.
std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node);
/// Gives a fused node its activation, where there is one.
void put_activation(Node& node, const Activation& activation);

/// A layer that grows by the nodes behind it; the last of them is replaced by the fused node.
class GrowingLayer {
 protected:
  GrowingLayer(Rewriter& rewriter, NodeId id) : rewriter_(rewriter), first_(id), place_(id) {}

  ValueId result() const { return rewriter_.result(place_); }
  /// The only reader of the result, when it is an `op`; `next` is then its id.
  const Node* next_as(std::string_view op, NodeId& next) const {
    next = rewriter_.next(result());
    return rewriter_.as(next, op);
  }
  void advance(NodeId next) {
    dead_.push_back(place_);
    place_ = next;
  }
  /// The activation behind the layer, which becomes part of it; an empty one where there is none.
  [[nodiscard]] Activation take_activation();

  Rewriter& rewriter_;
  NodeId first_;
  NodeId place_;  ///< the last node that is part of the layer
  std::vector<NodeId> dead_;
};

}  // namespace quench::exec::rewrites
