// SPDX-License-Identifier: Apache-2.0
// Sums of bytes behind a convolution, which the convolution can add before it stores anything.
#include <array>

#include "exec/rewrites/integer.h"

namespace quench::exec::rewrites {
namespace {

/// Where a QLinearAdd has its operands, and a layer what it is given besides.
constexpr std::array<std::size_t, 2> kOperands = {0, 3};
constexpr std::size_t kOutScale = 6;
constexpr std::size_t kOutZero = 7;
constexpr std::size_t kResidual = 9;

bool is_engines(const Node& node, std::string_view op) {
  return node.domain == kEngineDomain && node.op_type == op;
}

/// The convolution that makes `value` for the Add alone and has no residual yet.
NodeId layer_of_sum(const Rewriter& rewriter, ValueId value, NodeId add) {
  const NodeId maker = rewriter.maker(value);
  if (maker == kNoNode || rewriter.next(value) != add) return kNoNode;
  const Node& node = rewriter.node(maker);
  const bool fits = is_engines(node, "QLinearConv") && node.input(kOutScale) != kNoValue &&
                    node.input(kResidual) == kNoValue;
  return fits ? maker : kNoNode;
}

/// The Add's activation, which is behind the sum.
void set_activation(Node& fused, const Node& add) {
  if (add.get_string("activation", "").empty()) return;
  fused.set("sum_activation", std::string(add.get_string("activation", "")));
  fused.set("sum_activation_alpha", add.get_float("activation_alpha", 0));
  fused.set("sum_activation_beta", add.get_float("activation_beta", 0));
}

}  // namespace

bool integer_residual(Rewriter& rewriter, NodeId id) {
  const Node& add = rewriter.node(id);
  if (!is_engines(add, "QLinearAdd")) return false;
  const Graph& graph = rewriter.graph();
  NodeId layer = kNoNode;
  std::size_t mine = 0;
  for (const std::size_t operand : kOperands) {
    const NodeId found = layer_of_sum(rewriter, add.inputs[operand], id);
    // The later of two: the other one's bytes are there by then.
    if (found != kNoNode && found > layer) {
      layer = found;
      mine = operand;
    }
  }
  const std::size_t other = mine == 0 ? 3 : 0;
  if (layer == kNoNode || graph[add.inputs[other]].constant ||
      !same_shape(graph[add.inputs[0]].type, graph[add.inputs[3]].type)) {
    return false;
  }
  const Node& conv = rewriter.node(layer);
  std::vector<ValueId> inputs = conv.inputs;
  inputs.resize(kResidual, kNoValue);
  inputs.insert(inputs.end(), {add.inputs[other], add.inputs[other + 1], add.inputs[other + 2],
                               inputs[kOutScale], inputs[kOutZero]});
  inputs[kOutScale] = add.inputs[kOutScale];
  inputs[kOutZero] = add.input(kOutZero);
  Node fused = engine_node(conv.op_type, conv.name, std::move(inputs), add.outputs);
  fused.attributes = conv.attributes;
  if (other == 0) fused.set("residual_first", std::int64_t{1});
  set_activation(fused, add);
  const std::array dead = {layer};
  rewriter.replace(id, std::move(fused), dead);
  return true;
}

}  // namespace quench::exec::rewrites
