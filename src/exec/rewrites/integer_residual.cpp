// SPDX-License-Identifier: Apache-2.0
// Sums of bytes behind a convolution, which the convolution can add before it stores anything.
#include <array>

#include "exec/rewrites/integer.h"

namespace quench::exec::rewrites {
namespace {

bool is_engines(const Node& node, std::string_view op) {
  return node.domain == kEngineDomain && node.op_type == op;
}

/// The convolution that makes `value` for the Add alone and has no residual yet.
NodeId layer_of_sum(const Rewriter& rewriter, ValueId value, NodeId add) {
  const NodeId maker = rewriter.maker(value);
  if (maker == kNoNode || rewriter.next(value) != add) return kNoNode;
  const Node& node = rewriter.node(maker);
  const bool fits = is_engines(node, "QLinearConv") &&
                    node.input(LayerNode::kOutScale) != kNoValue &&
                    node.input(LayerNode::kResidual) == kNoValue;
  return fits ? maker : kNoNode;
}

}  // namespace

bool integer_residual(Rewriter& rewriter, NodeId id) {
  const Node& add = rewriter.node(id);
  if (!is_engines(add, "QLinearAdd")) return false;
  const Graph& graph = rewriter.graph();
  const BinaryNode sum = BinaryNode::of(add);
  NodeId layer = layer_of_sum(rewriter, sum.a.value, id);
  const NodeId second = layer_of_sum(rewriter, sum.b.value, id);
  // The later of two: the other one's bytes are there by then.
  const bool residual_first = second > layer;
  if (residual_first) layer = second;
  const ByteInput& residual = residual_first ? sum.a : sum.b;
  if (layer == kNoNode || graph[residual.value].constant ||
      !same_shape(graph[sum.a.value].type, graph[sum.b.value].type)) {
    return false;
  }
  const Node& conv = rewriter.node(layer);
  LayerNode inputs = LayerNode::of(conv);
  inputs.residual = residual;
  inputs.middle = inputs.out;
  inputs.out = sum.out;
  Node fused = engine_node(conv.op_type, conv.name, inputs.inputs(), add.outputs);
  fused.attributes = conv.attributes;
  if (residual_first) fused.set("residual_first", std::int64_t{1});
  FusedActivation::of(add).put(fused, "sum_");
  const std::array dead = {layer};
  rewriter.replace(id, std::move(fused), dead);
  return true;
}

}  // namespace quench::exec::rewrites
