// SPDX-License-Identifier: Apache-2.0
// Finds gates that are written out with Clip, and makes HardSigmoid of them.
#include "passes/hard_gate.h"

#include "ops/facts.h"

namespace quench::passes {
namespace {

Node hard_sigmoid(ValueId x, const std::string& name, ValueId result) {
  Node node;
  node.op_type = "HardSigmoid";
  node.name = name;
  node.inputs = {x};
  node.outputs = {result};
  node.set("alpha", 1.0F / 6);
  node.set("beta", 0.5F);
  return node;
}

/// Clip(x + 3, 0, 6) / 6.
bool join_hard_sigmoid(Rewriter& rewriter, NodeId root) {
  Matcher match(rewriter);
  const Product product = match.product_at(root);
  if (!product.is(1.0 / 6, 1) || product.factors[0] == kNoValue) return false;
  const Node* clip = match.inner(product.factors[0], "Clip");
  const auto bounds = clip == nullptr ? std::nullopt : clip_bounds(rewriter, *clip);
  if (!bounds || bounds->first != 0 || !near(bounds->second, 6)) return false;
  const ValueId x = match.plus(clip->input(0), 3);
  if (x == kNoValue) return false;
  const Node& quotient = rewriter.node(root);
  rewriter.replace(root, hard_sigmoid(x, quotient.name, quotient.outputs[0]), match.taken());
  return true;
}

/// x * Clip(x + 3, 0, 6) / 6 as x * HardSigmoid(x): the gate takes the place of the Clip. Its
/// result is a sixth of the Clip's, so it gets a name of its own.
bool join_hard_swish(Rewriter& rewriter, NodeId root, std::size_t first) {
  Matcher match(rewriter);
  const Product product = match.product_at(root);
  if (product.factors.size() != 2) return false;
  const ValueId x = product.factors[first];
  const ValueId gate = product.factors[1 - first];
  if (x == kNoValue || gate == kNoValue ||
      !is_hard_swish(rewriter, match, product.scale, x, gate)) {
    return false;
  }
  const NodeId clip = rewriter.maker(gate);
  const Value& clipped = rewriter.graph()[gate];
  const ValueId open = rewriter.add_value(clipped.name + "_gate", clipped.type);
  std::vector<NodeId> dead = match.taken();
  std::erase(dead, clip);
  Node product_node;
  product_node.op_type = "Mul";
  product_node.name = rewriter.node(root).name;
  product_node.inputs = {x, open};
  product_node.outputs = rewriter.node(root).outputs;
  rewriter.replace(clip, hard_sigmoid(x, rewriter.node(clip).name, open));
  rewriter.replace(root, std::move(product_node), dead);
  return true;
}

}  // namespace

std::optional<std::pair<float, float>> clip_bounds(const Rewriter& rewriter, const Node& clip) {
  const auto clamp =
      ops::clip_epilogue({.node = clip, .opset = rewriter.opset(), .number = [&](ValueId id) {
                            return rewriter.scalar(id);
                          }});
  return clamp ? std::optional(std::pair(clamp->alpha, clamp->beta)) : std::nullopt;
}

bool is_product(const Rewriter& rewriter, NodeId root) {
  if (rewriter.opset() < 7) return false;  // broadcasting was an attribute
  return rewriter.as(root, "Mul") != nullptr || rewriter.as(root, "Div") != nullptr;
}

bool is_hard_swish(const Rewriter& rewriter, Matcher& match, double scale, ValueId x,
                   ValueId gate) {
  const Node* clip = match.inner(gate, "Clip");
  if (!near(scale, 1.0 / 6) || clip == nullptr) return false;
  const auto bounds = clip_bounds(rewriter, *clip);
  return bounds && bounds->first == 0 && near(bounds->second, 6) &&
         match.plus(clip->input(0), 3) == x;
}

bool join_hard_gate(Rewriter& rewriter, NodeId root) {
  if (!is_product(rewriter, root)) return false;
  return join_hard_swish(rewriter, root, 0) || join_hard_swish(rewriter, root, 1) ||
         join_hard_sigmoid(rewriter, root);
}

}  // namespace quench::passes
