// SPDX-License-Identifier: Apache-2.0
// Where the channels of weights lie.
#include "ops/facts.h"

namespace quench::ops {
namespace {

std::optional<WeightLayout> convolution(const Node& node, const Shape& shape, bool transposed) {
  const std::int64_t groups = node.get_int("group", 1);
  if (shape.size() < 3 || groups < 1 || shape[0] % groups != 0) return std::nullopt;
  if (!transposed) return WeightLayout{.channel_axis = 0, .groups = groups, .channels = shape[0]};
  // The same index of axis 1 is another channel in every group; one channel a group, axis 0 tells.
  return WeightLayout{.channel_axis = groups > 1 && shape[1] == 1 ? 0 : 1,
                      .groups = groups,
                      .channels = num_elements(Shape{shape[1], groups}).value_or(-1),
                      .grouped_axis = groups > 1 && (shape[0] != groups || shape[1] != 1)};
}

std::optional<WeightLayout> matrix(const Node& node, std::size_t input, const Shape& shape) {
  const auto rank = static_cast<int>(shape.size());
  // A Gemm multiplies matrices only, a MatMul stacks of them.
  const bool stacked = facts(node).bias < 0;
  if (rank < 2 || (rank > 2 && !stacked)) return std::nullopt;
  const bool columns = input == 1 && node.get_int("transB", 0) == 0;
  const int channel = columns ? rank - 1 : rank - 2;
  return WeightLayout{.channel_axis = channel,
                      .sum_axis = columns ? rank - 2 : rank - 1,
                      .channels = shape[static_cast<std::size_t>(channel)]};
}

std::optional<WeightLayout> table(const Node& node, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = node.get_int("axis", facts(node).axis);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return WeightLayout{.channel_axis = static_cast<int>(axis)};
}

}  // namespace

bool is_convolution(const Node& node) {
  const WeightKind kind = facts(node).weight;
  return kind == WeightKind::Convolution || kind == WeightKind::TransposedConvolution;
}

bool is_layer(const Node& node) {
  return is_convolution(node) || facts(node).weight == WeightKind::Matrix;
}

std::optional<WeightLayout> weight_layout(const Node& node, std::size_t input,
                                          const Shape& weight) {
  const OpFacts& known = facts(node);
  if (input > 2 || ((static_cast<unsigned>(known.weights) >> input) & 1U) == 0) return std::nullopt;
  switch (known.weight) {
    case WeightKind::Convolution:
      return convolution(node, weight, false);
    case WeightKind::TransposedConvolution:
      return convolution(node, weight, true);
    case WeightKind::Matrix:
      return matrix(node, input, weight);
    case WeightKind::Table:
      return table(node, weight);
    case WeightKind::Recurrent:
      return WeightLayout{.channel_axis = 1};
    case WeightKind::None:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace quench::ops
