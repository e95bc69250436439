// SPDX-License-Identifier: Apache-2.0
// Layers that are too small to be worth quantising.
#include "tune/small_layers.h"

#include "plan/facts.h"

namespace quench {
namespace {

bool has_weight(const Graph& graph, const Node& node) {
  return ops::is_layer(node) && node.inputs.size() > 1 && node.inputs[1] != kNoValue &&
         graph[node.inputs[1]].constant.has_value();
}

bool is_small(const Graph& graph, const Node& node, const QuantizeOptions& options) {
  const Tensor& weight = *graph[node.inputs[1]].constant;
  if (weight.size() <= options.min_quant_weight_size) return true;
  const auto layout = ops::weight_layout(node, 1, weight.shape());
  return ops::is_convolution(node) && layout && layout->channels >= 0 &&
         layout->channels <= options.min_quant_weight_channel;
}

}  // namespace

QuantConfig without_small_layers(const Graph& graph, const QuantizeOptions& options) {
  QuantConfig config = options.config;
  if (options.min_quant_weight_size <= 0 && options.min_quant_weight_channel <= 0) return config;
  for (const Node& node : graph.nodes) {
    if (has_weight(graph, node) && is_small(graph, node, options)) {
      config.by_layer[plan::key_of(graph, node)].skip = true;
    }
  }
  return config;
}

}  // namespace quench
