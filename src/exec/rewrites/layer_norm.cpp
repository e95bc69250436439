// SPDX-License-Identifier: Apache-2.0
// LayerNormalization written out in means, squares and roots.
#include <algorithm>

#include "exec/rewrites/patterns.h"

namespace quench::exec::rewrites {
namespace {

std::int64_t last_dim(const Rewriter& rewriter, ValueId x) {
  const auto& shape = rewriter.graph()[x].type.shape;
  return shape && !shape->empty() ? shape->back().value : -1;
}

/// Whether a ReduceMean keeps the last axis, as one, and takes the mean over nothing else.
bool is_mean_of_last(const Rewriter& rewriter, const Node& mean) {
  std::vector<std::int64_t> axes = mean.get_ints("axes");
  if (const Tensor* input = rewriter.constant(mean.input(1))) {
    if (input->dtype() != DType::Int64) return false;
    axes.assign(input->data<std::int64_t>().begin(), input->data<std::int64_t>().end());
  }
  if (axes.size() != 1 || mean.get_int("keepdims", 1) == 0) return false;
  const auto& shape = rewriter.graph()[mean.inputs[0]].type.shape;
  return axes[0] == -1 || (shape && axes[0] == static_cast<std::int64_t>(shape->size()) - 1);
}

/// The value of which `value` is the mean over the last axis; kNoValue: it is none.
ValueId mean_of(const Rewriter& rewriter, ValueId value) {
  const Node* mean = rewriter.maker_as(value, "ReduceMean");
  if (mean == nullptr || mean->input(0) == kNoValue || !is_mean_of_last(rewriter, *mean)) {
    return kNoValue;
  }
  return mean->inputs[0];
}

/// x, if `centred` is x - mean(x).
ValueId centred_of(const Rewriter& rewriter, ValueId centred) {
  const Node* sub = rewriter.maker_as(centred, "Sub");
  if (sub == nullptr || sub->inputs.size() != 2) return kNoValue;
  return mean_of(rewriter, sub->inputs[1]) == sub->inputs[0] ? sub->inputs[0] : kNoValue;
}

/// d, if `value` is d * d or d^2.
ValueId square_of(const Rewriter& rewriter, Matcher& match, ValueId value) {
  if (const Node* mul = match.inner(value, "Mul")) {
    return mul->inputs.size() == 2 && mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : kNoValue;
  }
  const Node* power = match.inner(value, "Pow");
  return power != nullptr && rewriter.scalar(power->input(1)) == 2.0 ? power->input(0) : kNoValue;
}

struct Norm {
  ValueId x = kNoValue;
  double epsilon = 0;
};

/// d, if `root` is d / deviation or d * (1 / deviation).
ValueId numerator(const Rewriter& rewriter, NodeId root, Matcher& match, ValueId& deviation) {
  const Node& node = rewriter.node(root);
  if (node.inputs.size() != 2) return kNoValue;
  if (rewriter.as(root, "Div") != nullptr) {
    deviation = node.inputs[1];
    return node.inputs[0];
  }
  if (rewriter.as(root, "Mul") == nullptr) return kNoValue;
  for (const std::size_t i : {1U, 0U}) {
    if (const Node* reciprocal = match.inner(node.inputs[i], "Reciprocal")) {
      deviation = reciprocal->input(0);
      return node.inputs[1 - i];
    }
  }
  return kNoValue;
}

/// Matches up to the division; every value on the way is read by the pattern alone.
std::optional<Norm> match_norm(const Rewriter& rewriter, NodeId root, Matcher& match) {
  ValueId deviation = kNoValue;
  const ValueId centred = numerator(rewriter, root, match, deviation);
  const Node* sqrt = centred == kNoValue ? nullptr : match.inner(deviation, "Sqrt");
  const Node* add = sqrt == nullptr ? nullptr : match.inner(sqrt->input(0), "Add");
  if (add == nullptr || add->inputs.size() != 2) return std::nullopt;
  const std::size_t number = rewriter.scalar(add->inputs[0]) ? 0 : 1;
  const auto epsilon = rewriter.scalar(add->inputs[number]);
  const ValueId variance = add->inputs[1 - number];
  if (!epsilon || match.inner(variance, "ReduceMean") == nullptr) return std::nullopt;
  const ValueId squared = mean_of(rewriter, variance);
  const ValueId again = squared == kNoValue ? kNoValue : square_of(rewriter, match, squared);
  const ValueId x = centred_of(rewriter, centred);
  if (again == kNoValue || x == kNoValue || centred_of(rewriter, again) != x) return std::nullopt;
  // Some exporters write the difference twice.
  std::vector<NodeId> subs = {rewriter.maker(centred)};
  if (again != centred) subs.push_back(rewriter.maker(again));
  const std::vector<NodeId> readers = {root, rewriter.maker(squared)};
  for (const NodeId sub : subs) {
    const Node& node = rewriter.node(sub);
    if (!rewriter.private_to(rewriter.result(sub), readers) ||
        !rewriter.private_to(node.inputs[1], subs)) {
      return std::nullopt;
    }
    match.take(sub);
    const NodeId mean = rewriter.maker(node.inputs[1]);
    if (match.taken().end() == std::find(match.taken().begin(), match.taken().end(), mean)) {
      match.take(mean);
    }
  }
  return Norm{.x = x, .epsilon = *epsilon};
}

/// The constant by which the only reader of `value`, an `op`, combines it: one number a channel.
ValueId next_constant(const Rewriter& rewriter, ValueId value, std::string_view op,
                      std::int64_t channels) {
  const Node* node = rewriter.as(rewriter.next(value), op);
  const ValueId other = node == nullptr ? kNoValue : other_operand(*node, value);
  const Tensor* tensor = rewriter.constant(other);
  return tensor != nullptr && tensor->shape() == Shape{channels} ? other : kNoValue;
}

}  // namespace

bool fuse_layer_norm(Rewriter& rewriter, NodeId root) {
  if (rewriter.as(root, "Div") == nullptr && rewriter.as(root, "Mul") == nullptr) return false;
  Matcher match(rewriter);
  const auto norm = match_norm(rewriter, root, match);
  if (!norm) return false;
  const std::int64_t channels = last_dim(rewriter, norm->x);
  const ValueId result = rewriter.result(root);
  const ValueId scale = next_constant(rewriter, result, "Mul", channels);
  if (scale == kNoValue) return false;
  NodeId place = rewriter.next(result);
  match.take(root);
  Node fused;
  fused.op_type = "LayerNormalization";
  fused.domain = kEngineDomain;  // the model's opset may be older than the operator
  fused.inputs = {norm->x, scale};
  fused.set("axis", std::int64_t{-1});
  fused.set("epsilon", static_cast<float>(norm->epsilon));
  const ValueId scaled = rewriter.result(place);
  if (const ValueId bias = next_constant(rewriter, scaled, "Add", channels); bias != kNoValue) {
    fused.inputs.push_back(bias);
    match.take(place);
    place = rewriter.next(scaled);
  }
  fused.name = rewriter.node(place).name;
  fused.outputs = rewriter.node(place).outputs;
  rewriter.replace(place, std::move(fused), match.taken());
  return true;
}

}  // namespace quench::exec::rewrites
