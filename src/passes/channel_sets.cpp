// SPDX-License-Identifier: Apache-2.0
// Finds the sets: a walk over all nodes that unites values, and marks those that must stay.
#include "passes/channel_sets.h"

#include <algorithm>
#include <numeric>

#include "ops/facts.h"

namespace quench::passes {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

/// What becomes of a channel depends on that channel alone, and finite numbers stay finite.
bool treats_channels_alike(const Node& node) {
  return ops::is(node, ops::kFunction | ops::kFinite) || ops::is(node, ops::kByChannel);
}

}  // namespace

ChannelSets::ChannelSets(const Graph& graph)
    : graph_(graph),
      uses_(graph),
      parent_(graph.values().size()),
      fixed_(graph.values().size(), false) {
  std::iota(parent_.begin(), parent_.end(), ValueId{0});
  for (const ValueId id : graph.inputs) fixed_[at(id)] = true;
  for (const ValueId id : graph.outputs) fixed_[at(id)] = true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const std::string& name : captured_names(node)) {
      if (const ValueId id = graph.find(name); id != kNoValue) fixed_[at(set_of(id))] = true;
    }
    read(static_cast<NodeId>(i), node);
  }
  for (ChannelLayer& layer : layers_) {  // sets are whole now
    const Node& node = graph.nodes[static_cast<std::size_t>(layer.node)];
    layer.in_set = set_of(node.inputs[0]);
    layer.out_set = set_of(node.outputs[0]);
  }
}

ValueId ChannelSets::set_of(ValueId value) const {
  while (parent_[at(value)] != value) value = parent_[at(value)];
  return value;
}

std::int64_t ChannelSets::channels(ValueId value) const {
  const auto& shape = graph_[value].type.shape;
  return shape && shape->size() == 4 && (*shape)[1].known() ? (*shape)[1].value : -1;
}

NodeId ChannelSets::dequantizer(ValueId value) const {
  if (at(value) >= size()) return -1;  // a constant added since
  const NodeId maker = uses_.producer[at(value)];
  if (maker < 0) return -1;
  const Node& node = graph_.nodes[static_cast<std::size_t>(maker)];
  const bool constant = node.op_type == "DequantizeLinear" && node.domain.empty() &&
                        graph_.constant(node.input(0)) != nullptr &&
                        graph_.constant(node.input(1)) != nullptr;
  return constant ? maker : -1;
}

const Tensor* ChannelSets::constant_behind(ValueId value) const {
  if (value == kNoValue) return nullptr;
  const NodeId dq = dequantizer(value);
  return graph_.constant(dq < 0 ? value : graph_.nodes[static_cast<std::size_t>(dq)].inputs[0]);
}

/// One scale in all or one for each channel, and 0 where zero is.
bool ChannelSets::has_even_scales(const Node& dequantize, const Tensor& stored) const {
  const Tensor& scale = *graph_.constant(dequantize.inputs[1]);
  if (dequantize.get_int("block_size", 0) != 0 || scale.rank() > 1) return false;
  const std::int64_t axis = dequantize.get_int("axis", 1);
  if (scale.rank() == 1 && (axis < 0 || axis >= stored.rank() ||
                            scale.size() != stored.shape()[static_cast<std::size_t>(axis)])) {
    return false;
  }
  if (dequantize.input(2) == kNoValue) return true;
  const Tensor* zero = graph_.constant(dequantize.input(2));
  return zero != nullptr && zero->shape() == scale.shape() &&
         std::ranges::all_of(zero->bytes(), [](std::byte each) { return each == std::byte{0}; });
}

/// A constant of whole bytes that one node reads, or whose DequantizeLinear one node reads.
bool ChannelSets::is_own_constant(ValueId value) const {
  const Tensor* tensor = constant_behind(value);
  if (tensor == nullptr || uses_.consumers[at(value)].size() != 1) return false;
  constexpr int kByte = 8;
  if (info(tensor->dtype()).bits < kByte) return false;
  const NodeId dq = dequantizer(value);
  return dq < 0 || has_even_scales(graph_.nodes[static_cast<std::size_t>(dq)], *tensor);
}

void ChannelSets::fix(const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const ValueId id : *list) {
      if (id != kNoValue) fixed_[at(set_of(id))] = true;
    }
  }
}

void ChannelSets::unite(ValueId a, ValueId b) {
  const ValueId from = set_of(a);
  const ValueId to = set_of(b);
  if (from == to) return;
  parent_[at(from)] = to;
  if (fixed_[at(from)]) fixed_[at(to)] = true;
}

bool ChannelSets::read_layer(NodeId id, const Node& node) {
  const Tensor* weight = constant_behind(node.input(1));
  if (!is_own_constant(node.input(1)) || weight->rank() != 4 || weight->size() == 0) return false;
  if (node.input(2) != kNoValue) {
    const Tensor* bias = constant_behind(node.input(2));
    if (!is_own_constant(node.input(2)) || bias->shape() != Shape{weight->shape()[0]}) return false;
  }
  const auto layout = ops::weight_layout(node, 1, weight->shape());
  if (!layout) return false;
  ChannelLayer layer{.node = id, .out = layout->channels};
  const std::int64_t groups = layout->groups;
  layer.depthwise = groups > 1;
  if (layer.depthwise && (groups != layer.out || weight->shape()[1] != 1)) return false;
  if (channels(node.outputs[0]) != layer.out ||
      channels(node.inputs[0]) != weight->shape()[1] * groups) {
    return false;
  }
  if (layer.depthwise) unite(node.inputs[0], node.outputs[0]);
  // Sums of floats depend on how many there are, if only by rounding.
  if (dequantizer(node.inputs[1]) < 0) fixed_[at(set_of(node.inputs[0]))] = true;
  layers_.push_back(layer);
  return true;
}

/// Whether all that it computes with has one number of channels, and each channel is by itself.
bool ChannelSets::ties_all(const Node& node) const {
  const std::int64_t count = node.outputs.size() == 1 ? channels(node.outputs[0]) : -1;
  if (count < 0 || !node.domain.empty()) return false;
  if (node.op_type == "Add" || node.op_type == "Mul") {
    return std::ranges::all_of(node.inputs, [&](ValueId input) {
      return channels(input) == count && constant_behind(input) == nullptr;
    });
  }
  if (!treats_channels_alike(node) || channels(node.inputs[0]) != count) return false;
  return std::ranges::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId input) {
    const Tensor* setting = input == kNoValue ? nullptr : graph_.constant(input);
    return input == kNoValue || (setting != nullptr && setting->size() == 1);
  });
}

void ChannelSets::read(NodeId id, const Node& node) {
  if (ops::facts(node).weight == ops::WeightKind::Convolution) {
    if (!read_layer(id, node)) fix(node);
    return;
  }
  if (!ties_all(node)) return fix(node);
  for (const ValueId input : node.inputs) {
    if (input != kNoValue && graph_.constant(input) == nullptr) unite(input, node.outputs[0]);
  }
}

}  // namespace quench::passes
