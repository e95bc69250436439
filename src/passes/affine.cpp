// SPDX-License-Identifier: Apache-2.0
// Reads scales and shifts out of nodes.
#include "passes/affine.h"

#include <algorithm>
#include <cmath>

namespace quench::passes {
namespace {

constexpr float kDefaultEpsilon = 1e-5F;

/// Inference with one mean a channel, its result the only one that is read. Before opset 14 further
/// outputs, read or not, meant training.
bool is_plain_batchnorm(const Rewriter& rewriter, const Node& node) {
  if (node.inputs.size() != 5 || rewriter.has_extra_outputs(node)) return false;
  if (rewriter.opset() < 14 && node.outputs.size() != 1) return false;
  if (node.get_int("training_mode", 0) != 0 || node.get_int("spatial", 1) == 0) return false;
  return rewriter.opset() >= 7 || node.get_int("is_test", 0) != 0;
}

std::optional<Affine> from_batchnorm(const Rewriter& rewriter, const Node& node, ValueId x,
                                     const Channels& channels) {
  // Its channels are on axis 1, whatever the layer before has.
  if (channels.last && channels.rank != 2) return std::nullopt;
  if (node.inputs[0] != x || !is_plain_batchnorm(rewriter, node)) return std::nullopt;
  std::vector<std::vector<double>> inputs;
  for (std::size_t i = 1; i < 5; ++i) {
    const Tensor* tensor = rewriter.constant(node.inputs[i]);
    if (tensor == nullptr || !is_real(tensor->dtype()) || tensor->size() != channels.count) {
      return std::nullopt;
    }
    inputs.push_back(to_doubles(*tensor));
  }
  const double epsilon = node.get_float("epsilon", kDefaultEpsilon);
  Affine result = Affine::identity(inputs[0].size());
  for (std::size_t i = 0; i < result.scale.size(); ++i) {
    result.scale[i] = inputs[0][i] / std::sqrt(inputs[3][i] + epsilon);
    result.shift[i] = inputs[1][i] - inputs[2][i] * result.scale[i];
  }
  return result;
}

std::optional<Affine> from_arithmetic(const Rewriter& rewriter, const Node& node, ValueId x,
                                      const Channels& channels) {
  // Before opset 7 an attribute said how to broadcast.
  if (node.inputs.size() != 2 || node.outputs.size() != 1 || rewriter.opset() < 7)
    return std::nullopt;
  const bool x_first = node.inputs[0] == x;
  const Tensor* other = rewriter.constant(node.inputs[x_first ? 1 : 0]);
  if (other == nullptr || (node.op_type == "Div" && !x_first)) return std::nullopt;
  const auto numbers = per_channel(*other, channels);
  if (!numbers) return std::nullopt;
  Affine result = Affine::identity(numbers->size());
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const double number = (*numbers)[i];
    if (node.op_type == "Mul") result.scale[i] = number;
    if (node.op_type == "Div") result.scale[i] = 1 / number;
    if (node.op_type == "Add") result.shift[i] = number;
    if (node.op_type == "Sub") {
      result.scale[i] = x_first ? 1 : -1;
      result.shift[i] = x_first ? -number : number;
    }
  }
  return result;
}

}  // namespace

Affine Affine::identity(std::size_t channels) {
  return {.scale = std::vector<double>(channels, 1.0), .shift = std::vector<double>(channels, 0.0)};
}

bool Affine::scales() const {
  return std::ranges::any_of(scale, [](double each) { return each != 1.0; });
}

bool Affine::shifts() const {
  return std::ranges::any_of(shift, [](double each) { return each != 0.0; });
}

bool Affine::finite() const {
  const auto is_finite = [](double each) { return std::isfinite(each); };
  return std::ranges::all_of(scale, is_finite) && std::ranges::all_of(shift, is_finite);
}

void Affine::append(const Affine& next) {
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] *= next.scale[i];
    shift[i] = shift[i] * next.scale[i] + next.shift[i];
  }
}

std::optional<std::vector<double>> per_channel(const Tensor& constant, const Channels& channels) {
  if (!is_real(constant.dtype())) return std::nullopt;
  const auto count = static_cast<std::size_t>(channels.count);
  // A constant of higher rank would give the result its own; of an unknown rank one is the least.
  if (constant.rank() > channels.rank.value_or(1)) return std::nullopt;
  if (constant.size() == 1) return std::vector<double>(count, to_doubles(constant).front());
  const std::int64_t from_end = channels.last ? 1 : channels.rank.value_or(0) - 1;
  const std::int64_t axis = constant.rank() - from_end;
  if (constant.size() != channels.count || from_end < 1 || axis < 0 ||
      constant.shape()[static_cast<std::size_t>(axis)] != channels.count) {
    return std::nullopt;
  }
  return to_doubles(constant);
}

std::optional<Affine> affine_of(const Rewriter& rewriter, const Node& node, ValueId x,
                                const Channels& channels) {
  if (!node.domain.empty()) return std::nullopt;
  std::optional<Affine> result;
  if (node.op_type == "BatchNormalization") {
    result = from_batchnorm(rewriter, node, x, channels);
  } else if (node.op_type == "Mul" || node.op_type == "Div" || node.op_type == "Add" ||
             node.op_type == "Sub") {
    result = from_arithmetic(rewriter, node, x, channels);
  }
  return result && result->finite() ? result : std::nullopt;
}

}  // namespace quench::passes
