// SPDX-License-Identifier: Apache-2.0
// A small pattern matcher: walks from a node towards what it reads and remembers the nodes that a
// fused one would replace.
#pragma once

#include "passes/rewriter.h"

namespace quench::passes {

/// A product of one number and some values.
struct Product {
  double scale = 1;
  std::vector<ValueId> factors;

  bool is(double number, std::size_t num_factors) const;
};

/// Equal but for what an exporter's rounding of a constant does.
bool near(double got, double wanted) noexcept;

/// One attempt at a pattern. Every node it walks through is read by the pattern alone; when the
/// attempt fails, the matcher is thrown away.
class Matcher {
 public:
  explicit Matcher(const Rewriter& rewriter) : rewriter_(rewriter) {}

  /// The node that makes `value`, if it is called `op` and nobody else reads the value.
  const Node* inner(ValueId value, std::string_view op);
  /// x, if `value` is x + number in either order and nobody else reads it.
  ValueId plus(ValueId value, double number);
  /// The factors of `value` through Mul and Div nodes that nobody else reads.
  Product product(ValueId value);
  /// The factors of a node's result; the node itself is not remembered.
  Product product_at(NodeId root);
  /// Remembers a node that the caller has checked.
  void take(NodeId node) { taken_.push_back(node); }
  const std::vector<NodeId>& taken() const noexcept { return taken_; }

 private:
  void walk(NodeId id, double power, Product& product);
  void walk_operand(ValueId value, NodeId reader, double power, Product& product);

  const Rewriter& rewriter_;
  std::vector<NodeId> taken_;
};

/// The operand of a two-input node that is not `value`; kNoValue when neither or both are.
ValueId other_operand(const Node& node, ValueId value);

}  // namespace quench::passes
