// SPDX-License-Identifier: Apache-2.0
// What quantisation needs to know of operators, whatever the target: their sockets.
#pragma once

#include <optional>

#include "ops/facts.h"
#include "quench/quant.h"

namespace quench::plan {

using ops::is_layer;

/// The inputs that hold numbers to be quantised, not shapes, indices or biases; those left out by
/// the node are not listed.
std::vector<std::size_t> data_inputs(const Node& node);
/// The axis of a layer's constant input whose indices may have a scale each, whatever the target;
/// -1: none.
int channel_axis(const Node& node, std::size_t input, const Tensor& weight);
/// Axis 0 for the weight of a transposed convolution whose groups have one channel each; else -1.
int depthwise_axis(const Node& node, const Tensor& weight);
/// The bounds that a node clamps its input to; nothing for other nodes.
std::optional<Range> activation_bounds(const Graph& graph, const Node& node, std::int64_t opset);
/// HardSigmoid(x) = Clip(alpha x + beta, 0, 1).
struct HardSlope {
  double alpha;
  double beta;
};
HardSlope hard_slope(const Node& hard_sigmoid);
/// Not known to be something else than float32.
bool maybe_float(const Graph& graph, ValueId value);
/// The name by which users call a node: its own, or that of its first output.
std::string key_of(const Graph& graph, const Node& node);

}  // namespace quench::plan
