// SPDX-License-Identifier: Apache-2.0
// Computes what DequantizeLinear nodes of constants give.
#include "tune/float_weights.h"

#include <optional>

#include "quant/dequantize_linear.h"
#include "quench/quant.h"

namespace quench::tune {
namespace {

/// Nothing where an input is computed, or scales are given by blocks.
std::optional<Tensor> dequantized(const Graph& graph, const Node& node) {
  const Tensor* integers = graph.constant(node.input(0));
  const Tensor* scale = graph.constant(node.input(1));
  const Tensor* zero = graph.constant(node.input(2));
  if (integers == nullptr || scale == nullptr || scale->dtype() != DType::Float32 ||
      scale->rank() > 1 || scale->size() == 0 || (zero == nullptr && node.input(2) != kNoValue)) {
    return std::nullopt;
  }
  const std::int64_t axis = node.get_int("axis", 1);
  if (scale->size() > 1 && (axis < 0 || axis >= integers->rank() ||
                            integers->shape()[static_cast<std::size_t>(axis)] != scale->size())) {
    return std::nullopt;
  }
  const auto expand = [=, integers = *integers, scale = *scale,
                       zero = zero == nullptr ? Tensor() : *zero] {
    const DType dtype = integers.dtype();
    if (dtype == DType::Int8 || dtype == DType::UInt8) {
      QuantParams params{{}, to_float(scale), {}};
      params.spec.axis = scale.size() > 1 ? static_cast<int>(axis) : -1;
      params.zero_point.resize(params.scale.size());
      if (zero.defined()) {
        const Tensor wide = convert(zero, DType::Int32);
        for (std::size_t i = 0; i < params.zero_point.size(); ++i) {
          params.zero_point[i] = wide.data<std::int32_t>()[wide.size() == 1 ? 0 : i];
        }
      }
      return dequantize_tensor(integers, params);
    }
    const std::vector<float> numbers =
        quant::dequantize_linear(integers, scale, zero.defined() ? &zero : nullptr, axis);
    return Tensor::of<float>(integers.shape(), std::span<const float>(numbers));
  };
  if (!integers->is_stored()) return expand();
  return Tensor::made(DType::Float32, integers->shape(), expand);
}

}  // namespace

void expand_to_float(Model& qdq) {
  Graph& graph = qdq.graph;
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op_type != "DequantizeLinear" || !node.domain.empty()) continue;
    std::optional<Tensor> floats = dequantized(graph, node);
    if (!floats) continue;
    const ValueId made = node.outputs[0];
    replace_uses(graph, made, graph.add_constant(graph[made].name, std::move(*floats)));
    dead[i] = true;
  }
  compact(graph, dead);
}

}  // namespace quench::tune
