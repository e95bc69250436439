// SPDX-License-Identifier: Apache-2.0
// The pattern matcher.
#include "passes/match.h"

#include <cmath>

namespace quench::passes {
namespace {

constexpr double kTolerance = 1e-5;
/// No pattern has more; longer chains are not worth walking again from each of their nodes.
constexpr std::size_t kMaxTaken = 16;

}  // namespace

bool near(double got, double wanted) noexcept {
  return std::abs(got - wanted) <= kTolerance * std::abs(wanted);
}

bool Product::is(double number, std::size_t num_factors) const {
  return near(scale, number) && factors.size() == num_factors;
}

const Node* Matcher::inner(ValueId value, std::string_view op) {
  const Node* node = rewriter_.maker_as(value, op);
  if (node == nullptr || rewriter_.next(value) == kNoNode) return nullptr;
  take(rewriter_.maker(value));
  return node;
}

ValueId Matcher::plus(ValueId value, double number) {
  const Node* add = inner(value, "Add");
  if (add == nullptr || add->inputs.size() != 2) return kNoValue;
  for (const std::size_t i : {0U, 1U}) {
    const auto constant = rewriter_.scalar(add->inputs[i]);
    if (constant && near(*constant, number)) return add->inputs[1 - i];
  }
  return kNoValue;
}

Product Matcher::product(ValueId value) {
  Product result;
  walk_operand(value, kNoNode, 1, result);
  return result;
}

Product Matcher::product_at(NodeId root) {
  Product result;
  walk(root, 1, result);
  return result;
}

/// Multiplies in the operands of a Mul or Div; any other node is a factor of its own.
void Matcher::walk(NodeId id, double power, Product& product) {
  const Node& node = rewriter_.node(id);
  const bool divides = rewriter_.as(id, "Div") != nullptr;
  if ((!divides && rewriter_.as(id, "Mul") == nullptr) || node.inputs.size() != 2) {
    product.factors.push_back(node.outputs.empty() ? kNoValue : node.outputs[0]);
    return;
  }
  walk_operand(node.inputs[0], id, power, product);
  walk_operand(node.inputs[1], id, divides ? -power : power, product);
}

void Matcher::walk_operand(ValueId value, NodeId reader, double power, Product& product) {
  if (const auto number = rewriter_.scalar(value)) {
    product.scale *= std::pow(*number, power);
    return;
  }
  const NodeId maker = rewriter_.maker(value);
  const NodeId next = value == kNoValue ? kNoNode : rewriter_.next(value);
  const bool is_product =
      rewriter_.as(maker, "Mul") != nullptr || rewriter_.as(maker, "Div") != nullptr;
  // A value that is divided by stays a factor no pattern knows: kNoValue.
  if (!is_product || next == kNoNode || (reader != kNoNode && next != reader) || power < 0 ||
      taken_.size() >= kMaxTaken) {
    product.factors.push_back(power < 0 ? kNoValue : value);
    return;
  }
  take(maker);
  walk(maker, power, product);
}

ValueId other_operand(const Node& node, ValueId value) {
  if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return kNoValue;
  if (node.inputs[0] == value) return node.inputs[1];
  return node.inputs[1] == value ? node.inputs[0] : kNoValue;
}

}  // namespace quench::passes
