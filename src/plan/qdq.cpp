// SPDX-License-Identifier: Apache-2.0
// Reads scales off QuantizeLinear and DequantizeLinear nodes.
#include "plan/qdq.h"

#include <cmath>

namespace quench::plan {
namespace {

/// Relative error of a bias' scale that ONNX Runtime lets pass.
constexpr float kBiasTolerance = 0.01F;

}  // namespace

bool is_q(const Node* node) {
  return node != nullptr && node->domain.empty() && node->op_type == "QuantizeLinear";
}

bool is_dq(const Node* node) {
  return node != nullptr && node->domain.empty() && node->op_type == "DequantizeLinear";
}

DType integer_type(const Graph& graph, const Node& node) {
  const ValueId zero = node.input(2);
  if (zero != kNoValue) return graph[zero].type.dtype;
  return is_dq(&node) ? graph[node.input(0)].type.dtype : DType::UInt8;
}

bool scale_within(const Graph& graph, const Node& q, const Range& bounds) {
  const Tensor* scale = graph.constant(q.input(1));
  const Tensor* zero = graph.constant(q.input(2));
  if (scale == nullptr || scale->size() != 1) return false;
  if (zero == nullptr ? q.input(2) != kNoValue : zero->size() != 1) return false;
  const DType dtype = integer_type(graph, q);
  if (!is_8_bit(dtype)) return false;
  const float least = dtype == DType::Int8 ? -128.0F : 0.0F;
  const float offset = zero == nullptr ? 0.0F : to_float(*zero)[0];
  const auto low = static_cast<double>((least - offset) * to_float(*scale)[0]);
  const auto high = static_cast<double>((least + 255.0F - offset) * to_float(*scale)[0]);
  constexpr double kSlack = 1.2e-7;
  return low >= bounds.min - kSlack && high <= bounds.max + kSlack;
}

bool bias_scale_fits(const Graph& graph, const Node& bias, const Node& input, const Node& weight) {
  const Tensor* found_scale = graph.constant(bias.input(1));
  const Tensor* input_scale = graph.constant(input.input(1));
  const Tensor* weight_scale = graph.constant(weight.input(1));
  if (found_scale == nullptr || input_scale == nullptr || weight_scale == nullptr) return false;
  const auto found = to_float(*found_scale);
  const auto scales = to_float(*weight_scale);
  if (input_scale->size() != 1 || scales.empty()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float wanted = to_float(*input_scale)[0] * scales[i % scales.size()];
    if (std::abs(found[i] - wanted) > kBiasTolerance * wanted + 1e-6F) return false;
  }
  return true;
}

bool same_constant(const Graph& graph, ValueId a, ValueId b) {
  if (a == b) return true;
  const Tensor* first = graph.constant(a);
  const Tensor* second = graph.constant(b);
  return first != nullptr && second != nullptr && *first == *second;
}

}  // namespace quench::plan
