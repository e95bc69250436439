// SPDX-License-Identifier: Apache-2.0
// Sums, products, concatenations, averages and Softmax between Q/DQ nodes.
#include <algorithm>

#include "exec/rewrites/activation.h"
#include "exec/rewrites/integer.h"
#include "formats/foreign.h"

namespace quench::exec::rewrites {
namespace {

/// What the result is put on, and every node from `id` to the QuantizeLinear.
struct Tail {
  Quantiser quantiser;
  Activation activation;
  std::vector<NodeId> dead;
};

bool is_clamp(const Activation& activation) {
  return activation.name == "relu" || activation.name == "clip";
}

/// The QuantizeLinear behind a node, perhaps with a Relu or Clip between.
std::optional<Tail> tail_of(const Rewriter& rewriter, NodeId id, bool clamps) {
  Tail tail{.dead = {id}};
  const NodeId next = rewriter.next(rewriter.result(id));
  if (next == kNoNode) return std::nullopt;
  const auto activation = activation_of(rewriter, rewriter.node(next));
  ValueId result = rewriter.result(id);
  if (clamps && activation && is_clamp(*activation) && rewriter.node(next).inputs[0] == result) {
    tail.activation = *activation;
    tail.dead.push_back(next);
    result = rewriter.result(next);
  }
  const auto quantiser = quantiser_behind(rewriter, result);
  if (!quantiser) return std::nullopt;
  tail.quantiser = *quantiser;
  return tail;
}

void put(Rewriter& rewriter, NodeId id, std::string_view op, std::vector<ValueId> inputs,
         const Tail& tail) {
  const Node& old = rewriter.node(id);
  Node node =
      engine_node(op, old.name, std::move(inputs), rewriter.node(tail.quantiser.node).outputs);
  node.attributes = old.attributes;
  if (old.foreign == kHalvesAway) node.set("halves_away", std::int64_t{1});
  put_activation(node, tail.activation);
  rewriter.replace(tail.quantiser.node, std::move(node), tail.dead);
}

bool binary(Rewriter& rewriter, NodeId id, std::string_view op) {
  const Node& node = rewriter.node(id);
  if (node.inputs.size() != 2 || rewriter.opset() < 7) return false;
  const auto a = dequantised_per_tensor(rewriter, node.inputs[0]);
  const auto b = dequantised_per_tensor(rewriter, node.inputs[1]);
  if (!a || !b) return false;
  const auto tail = tail_of(rewriter, id, true);
  if (!tail) return false;
  const BinaryNode fused{.a = a->input(), .b = b->input(), .out = tail->quantiser.params.input()};
  put(rewriter, id, op, fused.inputs(), *tail);
  return true;
}

bool concat(Rewriter& rewriter, NodeId id) {
  const auto tail = tail_of(rewriter, id, false);
  if (!tail) return false;
  const ParamValues& out = tail->quantiser.params;
  std::vector<ValueId> inputs = {out.scale, out.zero};
  for (const ValueId input : rewriter.node(id).inputs) {
    const auto x = dequantised_per_tensor(rewriter, input);
    if (!x) return false;
    inputs.insert(inputs.end(), {x->value, x->params.scale, x->params.zero});
  }
  // The operator's list of inputs is open: none of them may be left out at its end.
  Node node = engine_node("QLinearConcat", rewriter.node(id).name, {},
                          rewriter.node(tail->quantiser.node).outputs);
  node.inputs = std::move(inputs);
  node.attributes = rewriter.node(id).attributes;
  rewriter.replace(tail->quantiser.node, std::move(node), tail->dead);
  return true;
}

bool unary(Rewriter& rewriter, NodeId id, std::string_view op) {
  const auto x = dequantised_per_tensor(rewriter, rewriter.node(id).input(0));
  if (!x || rewriter.node(id).inputs.size() != 1) return false;
  const auto tail = tail_of(rewriter, id, false);
  if (!tail) return false;
  const UnaryNode fused{.x = x->input(), .out = tail->quantiser.params.input()};
  put(rewriter, id, op, fused.inputs(), *tail);
  return true;
}

/// The mean of bytes; where nothing quantises it again, the output's parameters are left out.
bool global_average(Rewriter& rewriter, NodeId id) {
  constexpr std::string_view kOp = "QLinearGlobalAveragePool";
  if (unary(rewriter, id, kOp)) return true;
  const Node& node = rewriter.node(id);
  const auto x = dequantised_per_tensor(rewriter, node.input(0));
  if (!x || rewriter.graph()[node.outputs[0]].type.dtype != DType::Float32) return false;
  const UnaryNode fused{.x = x->input()};
  rewriter.replace(id, engine_node(kOp, node.name, fused.inputs(), node.outputs), {});
  return true;
}

}  // namespace

bool integer_arithmetic(Rewriter& rewriter, NodeId id) {
  const Node& node = rewriter.node(id);
  if (!node.domain.empty() || node.outputs.size() != 1) return false;
  const std::string& op = node.op_type;
  if (op == "Add") return binary(rewriter, id, "QLinearAdd");
  if (op == "Mul") return binary(rewriter, id, "QLinearMul");
  if (op == "Concat") return concat(rewriter, id);
  if (op == "AveragePool") return unary(rewriter, id, "QLinearAveragePool");
  if (op == "GlobalAveragePool") return global_average(rewriter, id);
  if (op == "Softmax" && rewriter.opset() >= 13) return unary(rewriter, id, "QLinearSoftmax");
  return false;
}

}  // namespace quench::exec::rewrites
