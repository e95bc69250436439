// SPDX-License-Identifier: Apache-2.0
// Attention's Softmax with the factor and the mask in front of it: one pass over the scores.
#include <array>

#include "exec/rewrites/patterns.h"

namespace quench::exec::rewrites {
namespace {

bool is_last_axis(const Rewriter& rewriter, const Node& node) {
  const auto& shape = rewriter.graph()[node.inputs[0]].type.shape;
  if (!shape || shape->empty()) return false;
  const bool flattens = rewriter.opset() < 13;
  const std::int64_t axis = node.get_int("axis", flattens ? 1 : -1);
  return axis == -1 || axis == std::ssize(*shape) - 1;
}

/// A float tensor of known rank.
std::int64_t rank_of(const Rewriter& rewriter, ValueId id) {
  const ValueType& type = rewriter.graph()[id].type;
  return type.dtype == DType::Float32 && type.shape ? std::ssize(*type.shape) : -1;
}

/// The number that a Mul or Div by a constant multiplies by, and what it multiplies.
struct Scaled {
  ValueId value = kNoValue;
  double factor = 1;
};

Scaled scaled(const Rewriter& rewriter, Matcher& matcher, ValueId value) {
  if (const Node* div = matcher.inner(value, "Div")) {
    const auto number = rewriter.scalar(div->inputs[1]);
    if (number && *number != 0) return {.value = div->inputs[0], .factor = 1 / *number};
  } else if (const Node* mul = matcher.inner(value, "Mul")) {
    for (const std::size_t side : {0U, 1U}) {
      if (const auto number = rewriter.scalar(mul->inputs[side])) {
        return {.value = mul->inputs[1 - side], .factor = *number};
      }
    }
  }
  return {};
}

}  // namespace

bool fuse_softmax(Rewriter& rewriter, NodeId root) {
  const Node* softmax = rewriter.as(root, "Softmax");
  if (softmax == nullptr || rewriter.opset() < 7 || !is_last_axis(rewriter, *softmax)) return false;
  Matcher matcher(rewriter);
  const Node* add = matcher.inner(softmax->inputs[0], "Add");
  if (add == nullptr) return false;
  for (const std::size_t side : {0U, 1U}) {
    Matcher attempt = matcher;
    const Scaled scores = scaled(rewriter, attempt, add->inputs[side]);
    const ValueId mask = add->inputs[1 - side];
    if (scores.value == kNoValue || rank_of(rewriter, scores.value) < 1 ||
        rank_of(rewriter, mask) < 0 || rank_of(rewriter, mask) > rank_of(rewriter, scores.value)) {
      continue;
    }
    Node fused;
    fused.name = softmax->name;
    fused.op_type = "ScaledSoftmax";
    fused.domain = kEngineDomain;
    fused.inputs = {scores.value, mask};
    fused.outputs = softmax->outputs;
    fused.set("scale", static_cast<float>(scores.factor));
    rewriter.replace(root, std::move(fused), attempt.taken());
    return true;
  }
  return false;
}

}  // namespace quench::exec::rewrites
