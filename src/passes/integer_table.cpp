// SPDX-License-Identifier: Apache-2.0
// Functions of one 8-bit value: 256 results, computed once.
#include <algorithm>
#include <array>

#include "passes/integer.h"

namespace quench::passes {
namespace {

bool is_function(const Rewriter& rewriter, const Node& node) {
  static constexpr std::array kFunctions = {"Abs",         "Clip",
                                            "Elu",         "Erf",
                                            "Exp",         "Gelu",
                                            "HardSigmoid", "HardSwish",
                                            "Log",         "LeakyRelu",
                                            "Mish",        "Neg",
                                            "Relu",        "Selu",
                                            "Sigmoid",     "Softplus",
                                            "Sqrt",        "Softsign",
                                            "Tanh",        "Reciprocal",
                                            "Sign",        "ThresholdedRelu",
                                            "Swish"};
  return node.domain.empty() && node.outputs.size() == 1 && !node.inputs.empty() &&
         std::ranges::find(kFunctions, node.op_type) != kFunctions.end() &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId id) {
           return id == kNoValue || rewriter.constant(id) != nullptr;
         });
}

/// The nodes from a DequantizeLinear to a QuantizeLinear, as a graph of one byte in, one out.
class Body {
 public:
  explicit Body(const Rewriter& rewriter) : rewriter_(rewriter) {}

  Graph make(const std::vector<NodeId>& nodes, DType from) {
    ValueId last = body_.add_value({.name = "x", .type = ValueType::tensor(from)});
    body_.inputs = {last};
    for (const NodeId id : nodes) {
      Node node = rewriter_.node(id);
      node.inputs[0] = last;
      for (std::size_t i = 1; i < node.inputs.size(); ++i) node.inputs[i] = copy(node.inputs[i]);
      last = body_.add_fresh("y");
      node.outputs = {last};
      body_.nodes.push_back(std::move(node));
    }
    body_.outputs = {last};
    return std::move(body_);
  }

 private:
  ValueId copy(ValueId id) {
    return id == kNoValue ? id : body_.add_constant("constant", *rewriter_.constant(id));
  }

  const Rewriter& rewriter_;
  Graph body_;
};

}  // namespace

bool integer_table(Rewriter& rewriter, NodeId id) {
  const Node* quantise = rewriter.as(id, "QuantizeLinear");
  const auto to = quantise == nullptr ? std::nullopt : grid_of(rewriter, *quantise);
  if (!to || !to->per_tensor) return false;
  std::vector<NodeId> chain = {id};
  ValueId value = quantise->inputs[0];
  NodeId maker = rewriter.maker(value);
  while (maker != kNoNode && is_function(rewriter, rewriter.node(maker)) &&
         rewriter.next(value) == chain.back()) {
    chain.push_back(maker);
    value = rewriter.node(maker).inputs[0];
    maker = rewriter.maker(value);
  }
  const auto x = dequantised_per_tensor(rewriter, value);
  if (!x || rewriter.constant(x->value) != nullptr) return false;
  const std::vector<NodeId> dead(chain.begin() + 1, chain.end());
  chain.push_back(maker);
  std::ranges::reverse(chain);
  Node table = engine_node("Table", quantise->name, {x->value}, quantise->outputs);
  table.set("body", GraphBox(Body(rewriter).make(chain, x->grid.dtype)));
  rewriter.replace(id, std::move(table), dead);
  return true;
}

}  // namespace quench::passes
