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

std::vector<ValueId> LayerNode::inputs() const {
  return trimmed({x.value, x.scale, x.zero, w.value, w.scale, w.zero, out.scale, out.zero, bias});
}

std::vector<ValueId> BinaryNode::inputs() const {
  return trimmed({a.value, a.scale, a.zero, b.value, b.scale, b.zero, out.scale, out.zero});
}

std::vector<ValueId> UnaryNode::inputs() const {
  return trimmed({x.value, x.scale, x.zero, out.scale, out.zero});
}

std::vector<ValueId> DynamicNode::inputs() const {
  return trimmed({a.value, b.value, a.scale, b.scale, a.zero, b.zero, bias});
}

std::vector<ValueId> FloatLayerNode::inputs() const { return trimmed({x, w, bias}); }

std::vector<ValueId> OnTheFlyNode::inputs() const {
  return {operand, weight.value, weight.scale, weight.zero, added};
}

FusedActivation FusedActivation::of(const Node& node) {
  return {.name = node.get_string("activation", ""),
          .alpha = node.get_float("activation_alpha", 0),
          .beta = node.get_float("activation_beta", 0)};
}

void FusedActivation::put(Node& node) const {
  if (name.empty()) return;
  node.set("activation", name);
  node.set("activation_alpha", alpha);
  node.set("activation_beta", beta);
}

}  // namespace quench::exec
