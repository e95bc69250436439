// SPDX-License-Identifier: Apache-2.0
// Weights by operator: which inputs, and along which axes their scales may lie.
#include "plan/weight_sites.h"

#include <algorithm>

#include "base/format.h"
#include "plan/config.h"
#include "plan/facts.h"

namespace quench::plan {
namespace {

/// The inputs that hold weights, constant or not.
std::vector<std::size_t> weight_inputs(const Node& node) {
  std::vector<std::size_t> inputs;
  for (const std::size_t i : {0U, 1U, 2U}) {
    if (((static_cast<unsigned>(ops::facts(node).weights) >> i) & 1U) != 0) inputs.push_back(i);
  }
  return inputs;
}

/// The axis of a Transpose's input that becomes `axis` of its result.
int before_transpose(const Node& transpose, int axis, int rank) {
  const std::vector<std::int64_t> order = transpose.get_ints("perm");
  if (axis < 0 || order.empty()) return axis < 0 ? axis : rank - 1 - axis;
  return static_cast<int>(order.at(static_cast<std::size_t>(axis)));
}

/// The constant behind an input of a node: its own or, where a Transpose that nobody else reads
/// stands between (a table of which others read rows), that one's.
WeightSite site_of(const Graph& graph, const Uses& uses, NodeId id, std::size_t input) {
  const Node& node = graph.nodes[static_cast<std::size_t>(id)];
  const ValueId value = node.input(input);
  WeightSite site{.node = output_name(graph, node), .input = input};
  if (value == kNoValue) return site;
  const Tensor* constant = graph.constant(value);
  const auto shape = constant != nullptr ? constant->shape() : graph[value].type.static_shape();
  if (!shape) return site;
  const auto layout = ops::weight_layout(node, input, *shape).value_or(ops::WeightLayout{});
  site.channel_axis = layout.channel_axis;
  site.sum_axis = layout.sum_axis;
  const NodeId maker = uses.producer[static_cast<std::size_t>(value)];
  if (maker < 0 || uses.only_consumer(value) != id) return site;
  const Node& transpose = graph.nodes[static_cast<std::size_t>(maker)];
  if (transpose.op_type != "Transpose" || !transpose.domain.empty()) return site;
  const auto rank = static_cast<int>(shape->size());
  return {.node = output_name(graph, transpose),
          .input = 0,
          .channel_axis = before_transpose(transpose, layout.channel_axis, rank),
          .sum_axis = before_transpose(transpose, layout.sum_axis, rank)};
}

bool is_float(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

/// The output channels of a node; -1: unknown. Only behind a Transpose is the axis all that tells.
std::int64_t channels_of(const Graph& graph, const Node& node, const Tensor& weight,
                         const WeightSite& site) {
  if (site.node == output_name(graph, node)) {
    const auto layout = ops::weight_layout(node, site.input, weight.shape());
    return layout ? layout->channels : -1;
  }
  return site.channel_axis < 0 ? -1 : weight.shape()[static_cast<std::size_t>(site.channel_axis)];
}

std::string refuse(const Node& node, const Tensor& weight, std::int64_t channels,
                   const WeightFilter& filter) {
  if (weight.size() == 0) return "its weight is empty";
  if (weight.size() <= filter.min_size) {
    return format("its weight has no more than {} elements", filter.min_size);
  }
  if (ops::is_convolution(node) && channels >= 0 && channels <= filter.min_channel) {
    return format("it has no more than {} channels", filter.min_channel);
  }
  return {};
}

}  // namespace

const Node& WeightSite::node_in(const Graph& graph) const {
  const Node* found = &node_called(graph, node);
  // Where a value had to keep its name, Clip, QuantizeLinear and DequantizeLinear stand behind its
  // old maker.
  while (ops::facts(*found).weights == 0 && found->op_type != "Transpose") {
    found = &node_called(graph, graph[found->inputs.at(0)].name);
  }
  return *found;
}

WeightSites find_weights(const Graph& graph, const WeightFilter& filter) {
  if (!filter.body) check_names(graph, filter.config);
  WeightSites found;
  const Uses uses(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (output_name(graph, node).empty()) continue;  // nothing comes of it
    for (const std::size_t input : weight_inputs(node)) {
      const WeightSite site = site_of(graph, uses, id, input);
      const Tensor* weight = graph.constant(site.value_in(graph));
      if (weight == nullptr || !is_float(weight->dtype()) || weight->rank() < 2) continue;
      std::string reason = skip_reason(graph, node, filter.config);
      if (reason.empty()) {
        reason = refuse(node, *weight, channels_of(graph, node, *weight, site), filter);
      }
      if (reason.empty()) {
        found.sites.push_back(site);
      } else {
        found.refusals.push_back({.node = output_name(graph, node), .reason = std::move(reason)});
      }
    }
  }
  return found;
}

}  // namespace quench::plan
