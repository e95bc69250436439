// SPDX-License-Identifier: Apache-2.0
// The order of the inputs of fused nodes.
#include "exec/fused.h"

namespace quench::exec {
namespace {

/// Inputs that are left out at the end are not written.
std::vector<ValueId> trimmed(std::vector<ValueId> inputs) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  return inputs;
}

}  // namespace

LayerNode LayerNode::of(const Node& node) {
  return {
      .x = {node.input(kX), node.input(kXScale), node.input(kXZero)},
      .w = {node.input(kW), node.input(kWScale), node.input(kWZero)},
      .out = {kNoValue, node.input(kOutScale), node.input(kOutZero)},
      .bias = node.input(kBias),
      .residual = {node.input(kResidual), node.input(kResidualScale), node.input(kResidualZero)},
      .middle = {kNoValue, node.input(kMiddleScale), node.input(kMiddleZero)}};
}

std::vector<ValueId> LayerNode::inputs() const {
  return trimmed({x.value, x.scale, x.zero, w.value, w.scale, w.zero, out.scale, out.zero, bias,
                  residual.value, residual.scale, residual.zero, middle.scale, middle.zero});
}

BinaryNode BinaryNode::of(const Node& node) {
  return {.a = {node.input(kA), node.input(kAScale), node.input(kAZero)},
          .b = {node.input(kB), node.input(kBScale), node.input(kBZero)},
          .out = {kNoValue, node.input(kOutScale), node.input(kOutZero)}};
}

std::vector<ValueId> BinaryNode::inputs() const {
  return trimmed({a.value, a.scale, a.zero, b.value, b.scale, b.zero, out.scale, out.zero});
}

std::vector<ValueId> UnaryNode::inputs() const {
  return trimmed({x.value, x.scale, x.zero, out.scale, out.zero});
}

std::vector<ValueId> DynamicNode::inputs() const {
  return trimmed({a.value, b.value, a.scale, b.scale, a.zero, b.zero, bias, residual, factors});
}

std::vector<ValueId> FloatLayerNode::inputs() const { return trimmed({x, w, bias, residual}); }

std::vector<ValueId> AttentionNode::inputs() const {
  return trimmed({queries, keys, values, mask});
}

std::vector<ValueId> GatherRowsNode::inputs() const {
  return trimmed({table, indices, scales, zeros});
}

std::vector<ValueId> OnTheFlyNode::inputs() const {
  return {operand, weight.value, weight.scale, weight.zero, added};
}

FusedActivation FusedActivation::of(const Node& node, std::string_view prefix) {
  const std::string name = std::string(prefix) + "activation";
  return {.name = node.get_string(name, ""),
          .alpha = node.get_float(name + "_alpha", 0),
          .beta = node.get_float(name + "_beta", 0)};
}

void FusedActivation::put(Node& node, std::string_view prefix) const {
  if (name.empty()) return;
  const std::string key = std::string(prefix) + "activation";
  node.set(key, name);
  node.set(key + "_alpha", alpha);
  node.set(key + "_beta", beta);
}

}  // namespace quench::exec
