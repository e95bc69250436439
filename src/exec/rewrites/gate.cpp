// SPDX-License-Identifier: Apache-2.0
// Activations of the form x * f(x), whatever the order of their factors.
#include <cmath>
#include <limits>
#include <numbers>

#include "exec/rewrites/patterns.h"
#include "passes/hard_gate.h"

namespace quench::exec::rewrites {
namespace {

/// A pattern: whether scale * x * gate is it; `fused` gets the operator.
using Test = bool (*)(const Rewriter&, Matcher&, double scale, ValueId x, ValueId gate,
                      Node& fused);

bool swish(const Rewriter& /*rewriter*/, Matcher& match, double scale, ValueId x, ValueId gate,
           Node& fused) {
  const Node* sigmoid = match.inner(gate, "Sigmoid");
  fused.op_type = "Swish";
  return near(scale, 1) && sigmoid != nullptr && sigmoid->input(0) == x;
}

bool hard_swish(const Rewriter& /*rewriter*/, Matcher& match, double scale, ValueId x, ValueId gate,
                Node& fused) {
  const Node* node = match.inner(gate, "HardSigmoid");
  fused.op_type = "HardSwish";
  return near(scale, 1) && node != nullptr && node->input(0) == x &&
         near(node->get_float("alpha", 0.2F), 1.0 / 6) && near(node->get_float("beta", 0.5F), 0.5);
}

bool hard_swish_by_clip(const Rewriter& rewriter, Matcher& match, double scale, ValueId x,
                        ValueId gate, Node& fused) {
  fused.op_type = "HardSwish";
  return is_hard_swish(rewriter, match, scale, x, gate);
}

/// 0.5 * x * (1 + Erf(x / sqrt(2))).
bool gelu(const Rewriter& /*rewriter*/, Matcher& match, double scale, ValueId x, ValueId gate,
          Node& fused) {
  fused.op_type = "Gelu";
  if (!near(scale, 0.5)) return false;
  const ValueId sum = match.plus(gate, 1);
  const Node* erf = sum == kNoValue ? nullptr : match.inner(sum, "Erf");
  if (erf == nullptr) return false;
  const Product argument = match.product(erf->input(0));
  return argument.is(1 / std::numbers::sqrt2, 1) && argument.factors[0] == x;
}

/// Whether a value is 0.044715 * x^3.
bool is_cubic_term(const Rewriter& rewriter, Matcher& match, ValueId value, ValueId x) {
  const Product cubic = match.product(value);
  if (cubic.is(0.044715, 3)) {
    return cubic.factors == std::vector<ValueId>{x, x, x};
  }
  if (!cubic.is(0.044715, 1)) return false;
  const Node* power = match.inner(cubic.factors[0], "Pow");
  return power != nullptr && power->input(0) == x && rewriter.scalar(power->input(1)) == 3.0;
}

/// 0.5 * x * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
bool gelu_tanh(const Rewriter& rewriter, Matcher& match, double scale, ValueId x, ValueId gate,
               Node& fused) {
  fused.op_type = "Gelu";
  fused.set("approximate", std::string("tanh"));
  if (!near(scale, 0.5)) return false;
  const ValueId sum = match.plus(gate, 1);
  const Node* tanh = sum == kNoValue ? nullptr : match.inner(sum, "Tanh");
  if (tanh == nullptr) return false;
  const Product argument = match.product(tanh->input(0));
  if (!argument.is(std::sqrt(2 / std::numbers::pi), 1)) return false;
  const Node* add = match.inner(argument.factors[0], "Add");
  const ValueId cubic = add == nullptr ? kNoValue : other_operand(*add, x);
  return cubic != kNoValue && is_cubic_term(rewriter, match, cubic, x);
}

bool try_one(Rewriter& rewriter, NodeId root, Test test, std::size_t x) {
  Matcher match(rewriter);
  const Product product = match.product_at(root);
  if (product.factors.size() != 2 || product.factors[0] == kNoValue ||
      product.factors[1] == kNoValue) {
    return false;
  }
  Node fused;
  fused.domain = kEngineDomain;  // the model's opset may be older than the operator
  fused.name = rewriter.node(root).name;
  fused.inputs = {product.factors[x]};
  fused.outputs = rewriter.node(root).outputs;
  if (!test(rewriter, match, product.scale, product.factors[x], product.factors[1 - x], fused)) {
    return false;
  }
  rewriter.replace(root, std::move(fused), match.taken());
  return true;
}

}  // namespace

bool fuse_gate(Rewriter& rewriter, NodeId root) {
  if (!is_product(rewriter, root)) return false;
  for (const Test test : {swish, hard_swish, hard_swish_by_clip, gelu, gelu_tanh}) {
    if (try_one(rewriter, root, test, 0) || try_one(rewriter, root, test, 1)) return true;
  }
  return false;
}

bool fuse_relu(Rewriter& rewriter, NodeId root) {
  const Node* clip = rewriter.as(root, "Clip");
  if (clip == nullptr || clip->inputs.empty()) return false;
  const auto bounds = clip_bounds(rewriter, *clip);
  if (!bounds || bounds->first != 0 || bounds->second < std::numeric_limits<float>::max()) {
    return false;
  }
  Node relu = *clip;
  relu.op_type = "Relu";
  relu.inputs.resize(1);
  relu.attributes.clear();
  rewriter.replace(root, std::move(relu));
  return true;
}

}  // namespace quench::exec::rewrites
