// SPDX-License-Identifier: Apache-2.0
// Dequantises constants when a model is made ready.
#include "exec/engine/expand_weights.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "exec/rewrites/rewrite.h"
#include "quant/groups.h"
#include "quant/weight.h"

namespace quench::exec {
namespace {

bool is_dequantize(const Node& node) {
  return node.op_type == "DequantizeLinear" && (node.domain.empty() || node.domain == "ai.onnx");
}

bool computed_integers(const Graph& graph, const Uses& uses, ValueId id) {
  if (id == kNoValue) return false;
  const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
  if (maker < 0) return false;
  const Node& node = graph.nodes[static_cast<std::size_t>(maker)];
  return is_dequantize(node) && graph.constant(node.input(0)) == nullptr;
}

}  // namespace

bool read_in_float(const Graph& graph, const Uses& uses, ValueId id) {
  const auto index = static_cast<std::size_t>(id);
  if (uses.is_output[index] || uses.consumers[index].empty()) return false;
  return std::ranges::all_of(uses.consumers[index], [&](NodeId reader) {
    const Node& node = graph.nodes[static_cast<std::size_t>(reader)];
    if (node.op_type == "QuantizeLinear") return false;
    return std::ranges::none_of(
        node.inputs, [&](ValueId input) { return computed_integers(graph, uses, input); });
  });
}

std::optional<quant::QuantWeight> weight_of(const Graph& graph, const Node& node) {
  const Tensor* integers = graph.constant(node.input(0));
  const Tensor* scale = graph.constant(node.input(1));
  if (integers == nullptr || scale == nullptr || scale->dtype() != DType::Float32) return {};
  const DType dtype = integers->dtype();
  if (dtype != DType::Int4 && dtype != DType::Int8 && dtype != DType::Int16) return {};
  quant::QuantWeight weight{.spec = {}, .integers = *integers, .scale = *scale, .zero_point = {}};
  if (node.input(2) != kNoValue) {
    const Tensor* zero = graph.constant(node.input(2));
    if (zero == nullptr || zero->dtype() != dtype || zero->shape() != scale->shape()) return {};
    weight.zero_point = *zero;
  }
  weight.spec.block = node.get_int("block_size", 0);
  if (weight.spec.block < 0) return {};
  if (scale->rank() > 0 && (scale->size() != 1 || weight.spec.block > 0)) {
    const std::int64_t axis = node.get_int("axis", 1);
    const std::int64_t wrapped = axis < 0 ? axis + integers->rank() : axis;
    if (wrapped < 0 || wrapped >= integers->rank()) return {};
    weight.spec.axis = static_cast<int>(wrapped);
    const quant::Groups groups(integers->shape(), weight.spec);
    if (groups.scale_shape() != scale->shape()) return {};
  }
  return weight;
}

Tensor in_whole_bytes(const Tensor& constant) {
  const DTypeInfo& row = info(constant.dtype());
  if (row.bits == 0 || row.bits >= 8 || row.is_float) return constant;
  const DType bytes = row.is_signed ? DType::Int8 : DType::UInt8;
  if (!constant.is_stored()) return convert(constant, bytes);
  return Tensor::made(bytes, constant.shape(), [=] { return convert(constant, bytes); });
}

namespace {

/// Where the integers are not in memory, the floats are not either.
Tensor expanded(const quant::QuantWeight& weight, int threads) {
  if (weight.integers.is_stored()) {
    return Tensor::made(DType::Float32, weight.integers.shape(),
                        [=] { return quant::dequantize_weight(weight, threads); });
  }
  Tensor floats = quant::dequantize_weight(weight, threads);
  weight.integers.drop();
  return floats;
}

/// Weights that kernels pack themselves: widening all of them at once would take the memory that
/// packing saves.
bool stays_packed(const Graph& graph, const Uses& uses, std::size_t value) {
  return !uses.consumers[value].empty() && !uses.is_output[value] &&
         std::ranges::all_of(uses.consumers[value], [&](NodeId reader) {
           const Node& node = graph.nodes[static_cast<std::size_t>(reader)];
           return node.domain == kEngineDomain && node.op_type == "OnTheFly";
         });
}

void widen_small_integers(Graph& graph) {
  const Uses uses(graph);
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    Value& value = graph[static_cast<ValueId>(i)];
    if (!value.constant || stays_packed(graph, uses, i)) continue;
    value.constant = in_whole_bytes(*value.constant);
    value.type = ValueType::of(*value.constant);
  }
}

}  // namespace

void expand_weights(Graph& graph, const passes::PassOptions& keep) {
  const auto threads = at::get_num_threads();
  const Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!is_dequantize(node) || node.outputs.size() != 1) continue;
    const ValueId out = node.outputs[0];
    if (keep.keep.contains(graph[out].name) || !read_in_float(graph, uses, out)) continue;
    const auto weight = weight_of(graph, node);
    if (!weight) continue;
    Tensor floats = expanded(*weight, threads);
    graph[out].type = ValueType::of(floats);
    graph[out].constant = std::move(floats);
    dead[i] = true;
  }
  compact(graph, dead);
  widen_small_integers(graph);
  for (Node& node : graph.nodes) {
    for (Graph* inner : passes::mutable_subgraphs(node)) expand_weights(*inner, keep);
  }
}

}  // namespace quench::exec
