// SPDX-License-Identifier: Apache-2.0
// Reads activations out of nodes.
#include "exec/rewrites/activation.h"

namespace quench::exec::rewrites {

std::optional<Activation> activation_of(const Rewriter& rewriter, const Node& node) {
  // What fusion has made is of the engine's domain and means what ONNX's operator does.
  const bool known = node.domain.empty() || node.domain == kEngineDomain;
  if (!known || node.outputs.size() != 1) return std::nullopt;
  return ops::epilogue_of({.node = node, .opset = rewriter.opset(), .number = [&](ValueId id) {
                             return rewriter.scalar(id);
                           }});
}

void put_activation(Node& node, const Activation& activation) {
  FusedActivation{std::string(activation.name), activation.alpha, activation.beta}.put(node);
}

Activation GrowingLayer::take_activation() {
  const NodeId next = rewriter_.next(result());
  if (next == kNoNode) return {};
  const auto activation = activation_of(rewriter_, rewriter_.node(next));
  if (!activation || rewriter_.node(next).inputs[0] != result()) return {};
  advance(next);
  return *activation;
}

}  // namespace quench::exec::rewrites
