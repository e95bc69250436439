// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements (or take the largest) do so on integers as well.
#include <algorithm>
#include <array>

#include "exec/rewrites/integer.h"
#include "ops/facts.h"

namespace quench::exec::rewrites {
namespace {

constexpr std::int64_t kMaxPoolOnBytes = 12;
constexpr std::int64_t kResizeWithModes = 11;

bool is_nearest(const Rewriter& rewriter, const Node& node) {
  return rewriter.opset() >= kResizeWithModes && node.get_string("mode", "nearest") == "nearest" &&
         node.get_string("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
}

/// Whether the node hands on elements of its first input, in whatever order.
bool moves(const Rewriter& rewriter, const Node& node) {
  if (!node.domain.empty() || node.outputs.size() != 1 || node.inputs.empty()) return false;
  if (ops::is(node, ops::kMoves)) return true;
  if (node.op_type == "Resize") return is_nearest(rewriter, node);
  return node.op_type == "MaxPool" && rewriter.opset() >= kMaxPoolOnBytes;
}

/// Every input but the first is a constant, so that the node may stand earlier.
bool others_are_constant(const Rewriter& rewriter, const Node& node) {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || rewriter.constant(id) != nullptr;
  });
}

ValueType with_dtype(ValueType type, DType dtype) {
  type.dtype = dtype;
  return type;
}

/// DequantizeLinear, move, QuantizeLinear with the same parameters: move the integers.
bool move_between(Rewriter& rewriter, NodeId id, const Quantised& x) {
  const auto quantiser = quantiser_behind(rewriter, rewriter.result(id));
  if (!quantiser || !same_params(rewriter, x.params, quantiser->params)) return false;
  Node moved = rewriter.node(id);
  moved.inputs[0] = x.value;
  moved.outputs = {rewriter.result(quantiser->node)};
  const std::array dead = {id};
  rewriter.replace(quantiser->node, std::move(moved), dead);
  return true;
}

/// DequantizeLinear, move: the move first, so that what follows sees the DequantizeLinear.
bool move_first(Rewriter& rewriter, NodeId id, const Quantised& x) {
  const NodeId before = rewriter.maker(rewriter.node(id).inputs[0]);
  if (rewriter.next(rewriter.node(id).inputs[0]) != id ||
      !others_are_constant(rewriter, rewriter.node(id))) {
    return false;
  }
  Node moved = rewriter.node(id);
  Node dequantise = rewriter.node(before);
  const ValueId out = rewriter.result(id);
  const ValueId integers = rewriter.add_value(
      rewriter.graph()[out].name, with_dtype(rewriter.graph()[out].type, x.params.dtype));
  moved.inputs[0] = x.value;
  moved.outputs = {integers};
  dequantise.inputs[0] = integers;
  dequantise.outputs = {out};
  rewriter.replace(before, std::move(moved));
  rewriter.replace(id, std::move(dequantise));
  return true;
}

}  // namespace

bool integer_move(Rewriter& rewriter, NodeId id) {
  if (!moves(rewriter, rewriter.node(id))) return false;
  const auto x = dequantised_per_tensor(rewriter, rewriter.node(id).inputs[0]);
  if (!x || rewriter.constant(x->value) != nullptr) return false;
  return move_between(rewriter, id, *x) || move_first(rewriter, id, *x);
}

bool quantise_before_move(Rewriter& rewriter, NodeId id) {
  const Node* node = rewriter.as(id, "QuantizeLinear");
  const auto params = node == nullptr ? std::nullopt : params_of(rewriter, *node);
  if (!params || !params->per_tensor || rewriter.next(node->inputs[0]) != id) return false;
  const NodeId mover = rewriter.maker(node->inputs[0]);
  if (mover == kNoNode || !moves(rewriter, rewriter.node(mover))) return false;
  const ValueId source = rewriter.node(mover).inputs[0];
  if (source == kNoValue || rewriter.maker(source) == kNoNode || rewriter.next(source) != mover ||
      dequantised(rewriter, source) || !others_are_constant(rewriter, rewriter.node(mover))) {
    return false;
  }
  Node moved = rewriter.node(mover);
  Node quantise = *node;
  const ValueType& type = rewriter.graph()[source].type;
  const ValueId integers =
      rewriter.add_value(rewriter.graph()[source].name, with_dtype(type, params->dtype));
  quantise.inputs[0] = source;
  quantise.outputs = {integers};
  moved.inputs[0] = integers;
  moved.outputs = rewriter.node(id).outputs;
  rewriter.replace(mover, std::move(quantise));
  rewriter.replace(id, std::move(moved));
  return true;
}

}  // namespace quench::exec::rewrites
