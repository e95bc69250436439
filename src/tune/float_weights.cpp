// SPDX-License-Identifier: Apache-2.0
// Computes what DequantizeLinear nodes of constants give.
#include "tune/float_weights.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace quench::tune {
namespace {

/// Nothing where an input is computed, or scales are given by blocks.
std::optional<Tensor> dequantized(const Graph& graph, const Node& node) {
  const Tensor* integers = graph.constant(node.input(0));
  const Tensor* scale = graph.constant(node.input(1));
  const Tensor* zero = graph.constant(node.input(2));
  if (integers == nullptr || scale == nullptr || scale->dtype() != DType::Float32 ||
      scale->rank() > 1 || (zero == nullptr && node.input(2) != kNoValue)) {
    return std::nullopt;
  }
  const Shape& shape = integers->shape();
  const std::vector<float> scales = to_float(*scale);
  std::vector<float> zeros = zero == nullptr ? std::vector<float>() : to_float(*zero);
  zeros.resize(scales.size(), 0.0F);
  std::size_t inner = static_cast<std::size_t>(std::max<std::int64_t>(integers->size(), 1));
  if (scales.size() > 1) {
    const std::int64_t axis = node.get_int("axis", 1);
    if (axis < 0 || axis >= integers->rank() ||
        shape[static_cast<std::size_t>(axis)] != std::ssize(scales)) {
      return std::nullopt;
    }
    inner = static_cast<std::size_t>(std::accumulate(shape.begin() + axis + 1, shape.end(),
                                                     std::int64_t{1}, std::multiplies<>()));
  }
  std::vector<float> numbers = to_float(*integers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t c = i / inner % scales.size();
    numbers[i] = (numbers[i] - zeros[c]) * scales[c];
  }
  return Tensor::of<float>(shape, std::span<const float>(numbers));
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
