// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's CPU provider: unsigned activations, signed weights, Q/DQ fused into QLinear
// operators.
#include <algorithm>

#include "plan/facts.h"
#include "plan/qdq.h"
#include "plan/target.h"

namespace quench::plan {
namespace {

bool is_conv(const Node& node) { return ops::facts(node).weight == ops::WeightKind::Convolution; }

/// Whether a convolution comes somewhere behind the node.
bool leads_to_conv(const Graph& graph, const Node& node) {
  const Uses uses(graph);
  std::vector<ValueId> pending = node.outputs;
  std::vector<bool> seen(graph.values().size());
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kNoValue || seen[static_cast<std::size_t>(value)]) continue;
    seen[static_cast<std::size_t>(value)] = true;
    for (const NodeId id : uses.consumers[static_cast<std::size_t>(value)]) {
      const Node& reader = graph.nodes[static_cast<std::size_t>(id)];
      if (is_conv(reader)) return true;
      pending.insert(pending.end(), reader.outputs.begin(), reader.outputs.end());
    }
  }
  return false;
}

/// What a layer does besides, or what a quantised model has between layers.
bool is_beside_layers(const Node& node) {
  const bool activation = !ops::facts(node).epilogue.name.empty() && ops::is(node, ops::kCheap);
  return activation || is_q(&node) || is_dq(&node);
}

/// Whether what a node makes goes through activations to convolutions, and nowhere else.
bool feeds_only_convs(const Graph& graph, const Node& node) {
  const Uses uses(graph);
  std::vector<ValueId> pending = node.outputs;
  while (!pending.empty()) {
    const auto value = static_cast<std::size_t>(pending.back());
    pending.pop_back();
    if (uses.is_output[value]) return false;
    for (const NodeId id : uses.consumers[value]) {
      const Node& reader = graph.nodes[static_cast<std::size_t>(id)];
      if (is_conv(reader)) continue;
      if (!is_beside_layers(reader)) return false;
      pending.push_back(reader.outputs[0]);
    }
  }
  return true;
}

bool reads_input(const Graph& graph, const Node& conv) {
  return is_conv(conv) && std::ranges::count(graph.inputs, conv.input(0)) != 0;
}

/// Output channels that are not made of zeros, as padding is.
std::int64_t live_channels(const Tensor& weight) {
  const std::vector<float> numbers = to_float(weight);
  const auto size =
      static_cast<std::ptrdiff_t>(numbers.size()) / std::max<std::ptrdiff_t>(weight.shape()[0], 1);
  std::int64_t live = 0;
  for (auto row = numbers.begin(); size > 0 && row != numbers.end(); row += size) {
    if (std::any_of(row, row + size, [](float number) { return number != 0; })) ++live;
  }
  return live;
}

/// The first convolution of an image, into few channels: its integer kernel gathers three bytes at
/// a time and leaves most lanes idle. With 20 layers, 95 % of them still run on integers. A pool
/// behind it would be slow in float.
std::string prefer_float(const Graph& graph, const Node& node) {
  constexpr std::int64_t kFewInputs = 4;
  constexpr std::int64_t kLanes = 16;
  constexpr std::ptrdiff_t kLeastLayers = 20;
  if (!reads_input(graph, node)) return "";
  const Tensor* weight = graph.constant(node.input(1));
  if (weight == nullptr || weight->rank() != 4 || weight->shape()[1] > kFewInputs ||
      live_channels(*weight) >= kLanes) {
    return "";
  }
  const auto firsts = std::ranges::count_if(
      graph.nodes, [&](const Node& each) { return reads_input(graph, each); });
  const auto layers = std::ranges::count_if(graph.nodes, is_layer);
  if (layers < kLeastLayers * firsts || !feeds_only_convs(graph, node)) return "";
  return "a first convolution into few channels is faster in float; a rule that names it quantises "
         "it";
}

std::string refuse(const Graph& graph, const Node& node) {
  if (node.op_type == "MaxPool" && !leads_to_conv(graph, node)) {
    return "behind the last convolution its integer kernel is slower than the float one";
  }
  if (node.op_type == "AveragePool") {
    for (const std::int64_t step : node.get_ints("dilations")) {
      if (step != 1) return "its integer kernel has no dilations";
    }
  }
  if (node.op_type == "Gemm" && node.input(2) != kNoValue &&
      (node.get_float("alpha", 1) != 1 || node.get_float("beta", 1) != 1)) {
    return "its integer kernel adds a bias only with alpha and beta 1";
  }
  if (node.op_type == "Concat" && graph[node.outputs[0]].type.shape &&
      graph[node.outputs[0]].type.shape->empty()) {
    return "it joins scalars";
  }
  return "";
}

}  // namespace

TargetInfo onnxruntime() {
  TargetInfo target{.name = "onnxruntime",
                    .summary = "ONNX Runtime on CPU: uint8 activations, int8 weights per channel"};
  target.ops = {
      integer(Form::Convolution),
      integer_to_float(Form::Product),
      integer("Add"),
      integer("Mul"),
      integer("Concat"),
      integer(Form::Average),
      integer("Sigmoid"),
      integer("LeakyRelu"),
      moves(Form::View),
      moves("Slice"),
      moves("Gather"),
      moves("GatherElements"),
      moves("Expand"),
      moves("Tile"),
      moves("Split"),
      moves("MaxPool"),
      moves("ReduceMax"),
      moves("ReduceMin"),
      moves("DepthToSpace"),
      moves("Resize"),
      in_float("Softmax", "its integer kernel costs accuracy and gains little"),
      in_float("Where", "its integer kernel gains nothing"),
      in_float("ArgMax", "its integer kernel gains nothing"),
      in_float(Form::Clamp, "no integer kernel; it is free behind a node that has one"),
  };
  target.integer_clip = true;
  target.otherwise = "ONNX Runtime has no integer kernel for it";
  target.refuse = refuse;
  target.prefer_float = prefer_float;
  target.depthwise_channels = 16;
  return target;
}

}  // namespace quench::plan
