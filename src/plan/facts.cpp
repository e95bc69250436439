// SPDX-License-Identifier: Apache-2.0
// Sockets of operators.
#include "plan/facts.h"

#include <algorithm>
#include <array>
#include <limits>

namespace quench::plan {
namespace {

constexpr std::int64_t kClipWithInputs = 11;

constexpr std::array kLayers = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
/// Operators whose every input is data.
constexpr std::array kAllInputs = {"Add", "Sub", "Mul", "Div",  "Concat",
                                   "Sum", "Max", "Min", "PRelu"};

template <std::size_t kSize>
bool contains(const std::array<const char*, kSize>& list, std::string_view op) {
  return std::ranges::find(list, op) != list.end();
}

std::optional<double> number(const Graph& graph, ValueId id) {
  const Tensor* tensor = graph.constant(id);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  return static_cast<double>(to_float(*tensor)[0]);
}

}  // namespace

bool is_layer(const Node& node) { return node.domain.empty() && contains(kLayers, node.op_type); }

std::vector<std::size_t> data_inputs(const Node& node) {
  std::size_t count = 1;
  if (is_layer(node)) count = 2;
  if (contains(kAllInputs, node.op_type)) count = node.inputs.size();
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < std::min(count, node.inputs.size()); ++i) {
    if (node.inputs[i] != kNoValue) result.push_back(i);
  }
  return result;
}

int channel_axis(const Node& node, std::size_t input, const Tensor& weight) {
  if (input != 1) return -1;
  if (node.op_type == "Conv" && weight.rank() >= 3) return 0;
  // One grid a column of the group: only without groups is that one a channel of the output.
  if (node.op_type == "ConvTranspose" && weight.rank() >= 3 && node.get_int("group", 1) == 1) {
    return 1;
  }
  if (node.op_type == "Gemm" && weight.rank() == 2) return node.get_int("transB", 0) != 0 ? 0 : 1;
  if (node.op_type == "MatMul" && weight.rank() == 2) return 1;
  return -1;
}

std::int64_t num_channels(const Node& node, const Tensor& weight) {
  const Shape& shape = weight.shape();
  if (node.op_type == "Conv" && shape.size() >= 3) return shape[0];
  if (node.op_type == "ConvTranspose" && shape.size() >= 3) {
    return shape[1] * node.get_int("group", 1);
  }
  if (node.op_type == "Gemm" && shape.size() == 2) {
    return shape[node.get_int("transB", 0) != 0 ? 0 : 1];
  }
  if (node.op_type == "MatMul" && shape.size() >= 2) return shape.back();
  return -1;
}

std::optional<Range> activation_bounds(const Graph& graph, const Node& node, std::int64_t opset) {
  if (!node.domain.empty() || node.outputs.size() != 1) return std::nullopt;
  Range bounds{.min = -std::numeric_limits<double>::infinity(),
               .max = std::numeric_limits<double>::infinity()};
  if (node.op_type == "Relu") {
    bounds.min = 0;
    return bounds;
  }
  if (node.op_type != "Clip") return std::nullopt;
  if (opset < kClipWithInputs) {
    if (node.find("min") != nullptr) bounds.min = static_cast<double>(node.get_float("min", 0));
    if (node.find("max") != nullptr) bounds.max = static_cast<double>(node.get_float("max", 0));
    return bounds;
  }
  for (const std::size_t i : {1U, 2U}) {
    if (node.input(i) == kNoValue) continue;
    const auto bound = number(graph, node.input(i));
    if (!bound) return std::nullopt;
    (i == 1 ? bounds.min : bounds.max) = *bound;
  }
  return bounds;
}

HardSlope hard_slope(const Node& hard_sigmoid) {
  return {.alpha = hard_sigmoid.get_float("alpha", 0.2F),
          .beta = hard_sigmoid.get_float("beta", 0.5F)};
}

bool maybe_float(const Graph& graph, ValueId value) {
  const ValueType& type = graph[value].type;
  if (const Tensor* constant = graph.constant(value)) return constant->dtype() == DType::Float32;
  return type.kind == ValueType::Kind::Unknown ||
         (type.kind == ValueType::Kind::Tensor &&
          (type.dtype == DType::Float32 || type.dtype == DType::Undefined));
}

std::string key_of(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return node.name;
  for (const ValueId output : node.outputs) {
    if (output != kNoValue) return graph[output].name;
  }
  return node.op_type;
}

}  // namespace quench::plan
