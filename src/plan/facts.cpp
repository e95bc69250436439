// SPDX-License-Identifier: Apache-2.0
// Sockets of operators.
#include "plan/facts.h"

#include <algorithm>
#include <limits>

#include "quench/plan.h"

namespace quench::plan {
namespace {

std::optional<double> number(const Graph& graph, ValueId id) {
  const Tensor* tensor = graph.constant(id);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  return static_cast<double>(to_float(*tensor)[0]);
}

}  // namespace

std::vector<std::size_t> data_inputs(const Node& node) {
  std::size_t count = is_layer(node) ? 2 : 1;
  if (ops::is(node, ops::kAllInputs)) count = node.inputs.size();
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < std::min(count, node.inputs.size()); ++i) {
    if (node.inputs[i] != kNoValue) result.push_back(i);
  }
  return result;
}

int channel_axis(const Node& node, std::size_t input, const Tensor& weight) {
  if (input != 1 || !is_layer(node)) return -1;
  const auto layout = ops::weight_layout(node, input, weight.shape());
  // Runtimes know no stacks of matrices with scales of their own.
  const bool stacked = layout && layout->sum_axis >= 0 && weight.rank() > 2;
  if (!layout || layout->grouped_axis || stacked) return -1;
  return depthwise_axis(node, weight) >= 0 ? -1 : layout->channel_axis;
}

int depthwise_axis(const Node& node, const Tensor& weight) {
  if (ops::facts(node).weight != ops::WeightKind::TransposedConvolution) return -1;
  const auto layout = ops::weight_layout(node, 1, weight.shape());
  const bool depthwise = layout && layout->groups > 1 && !layout->grouped_axis;
  return depthwise ? layout->channel_axis : -1;
}

std::optional<Range> activation_bounds(const Graph& graph, const Node& node, std::int64_t opset) {
  const ops::OpFacts& known = ops::facts(node);
  if (known.bounds == nullptr || node.outputs.size() != 1) return std::nullopt;
  const auto bounds = known.bounds(
      {.node = node, .opset = opset, .number = [&](ValueId id) { return number(graph, id); }});
  if (!bounds) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return Range{.min = bounds->min.value_or(-kInfinity), .max = bounds->max.value_or(kInfinity)};
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
  const std::string& output = output_name(graph, node);
  return output.empty() ? node.op_type : output;
}

}  // namespace quench::plan
