// SPDX-License-Identifier: Apache-2.0
// Every constant with a side along the channels is replaced by one with the chosen entries.
#include "passes/select_channels.h"

#include <cstring>

namespace quench::passes {
namespace {

using Channels = std::vector<std::int64_t>;

/// What stands where a channel is new.
enum class Fill { Zeros, LastEntry };

/// The chosen entries along `axis`.
Tensor taken(const Tensor& tensor, std::size_t axis, const Channels& channels, Fill fill) {
  Shape shape = tensor.shape();
  const auto old = static_cast<std::size_t>(shape[axis]);
  shape[axis] = static_cast<std::int64_t>(channels.size());
  Tensor result = Tensor::zeros(tensor.dtype(), shape);
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(shape[i]);
  const Tensor held = tensor.held();
  const std::size_t entry = tensor.num_bytes() / outer / old;
  const std::byte* src = held.bytes().data();
  std::byte* dst = result.mutable_bytes().data();
  for (std::size_t i = 0; i < outer; ++i, src += old * entry) {
    for (const std::int64_t channel : channels) {
      const std::size_t from = channel == kNewChannel ? old - 1 : static_cast<std::size_t>(channel);
      if (channel != kNewChannel || fill == Fill::LastEntry) {
        std::memcpy(dst, src + from * entry, entry);
      }
      dst += entry;
    }
  }
  return result;
}

class Selection {
 public:
  Selection(Graph& graph, const ChannelSets& sets) : graph_(graph), sets_(sets) {}

  void set_outputs(const ChannelLayer& layer, const Channels& channels) {
    set_input(layer.node, 1, 0, channels);
    if (node(layer.node).input(2) != kNoValue) set_input(layer.node, 2, 0, channels);
    if (layer.depthwise) {
      node(layer.node).set("group", static_cast<std::int64_t>(channels.size()));
    }
  }

  /// The constant behind an input, which may be read by way of a DequantizeLinear.
  void set_input(NodeId id, std::size_t input, std::size_t axis, const Channels& channels) {
    const NodeId dq = sets_.dequantizer(node(id).inputs[input]);
    if (dq < 0) return replace(node(id).inputs[input], axis, channels, Fill::Zeros);
    Node& dequantize = node(dq);
    replace(dequantize.inputs[0], axis, channels, Fill::Zeros);
    const bool along = dequantize.get_int("axis", 1) == static_cast<std::int64_t>(axis);
    if (graph_.constant(dequantize.inputs[1])->rank() == 0 || !along) return;
    // The last channel's scale again: that of a bias stays its weight's times its input's.
    replace(dequantize.inputs[1], 0, channels, Fill::LastEntry);
    if (dequantize.input(2) != kNoValue)
      replace(dequantize.inputs[2], 0, channels, Fill::LastEntry);
  }

 private:
  Node& node(NodeId id) { return graph_.nodes[static_cast<std::size_t>(id)]; }

  void replace(ValueId& input, std::size_t axis, const Channels& channels, Fill fill) {
    const std::string name = graph_[input].name + "_channels";
    input = graph_.add_constant(name, taken(*graph_.constant(input), axis, channels, fill));
  }

  Graph& graph_;
  const ChannelSets& sets_;
};

}  // namespace

void select_channels(Graph& graph, const ChannelSets& sets, const ChannelChoice& choice) {
  Selection selection(graph, sets);
  for (const ChannelLayer& layer : sets.layers()) {
    const auto out = choice.find(layer.out_set);
    const auto in = choice.find(layer.in_set);
    if (out != choice.end()) selection.set_outputs(layer, out->second);
    if (in != choice.end() && !layer.depthwise) {
      selection.set_input(layer.node, 1, 1, in->second);
    }
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto found = choice.find(sets.set_of(static_cast<ValueId>(i)));
    Value& value = graph[static_cast<ValueId>(i)];
    if (found == choice.end() || !value.type.shape) continue;
    (*value.type.shape)[1].value = static_cast<std::int64_t>(found->second.size());
  }
}

}  // namespace quench::passes
