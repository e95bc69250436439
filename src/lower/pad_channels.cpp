// SPDX-License-Identifier: Apache-2.0
// Channels of zeros around depthwise convolutions, whose kernels take many channels at a time.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "lower/channel_sets.h"
#include "quench/lower.h"

namespace quench {
namespace lower {
namespace {

/// `count` more entries along `axis`: zeros, or the last entry again.
Tensor padded(const Tensor& tensor, std::int64_t axis, std::int64_t count, bool repeat) {
  Shape shape = tensor.shape();
  const auto along = static_cast<std::size_t>(axis);
  const std::int64_t old = shape[along];
  shape[along] += count;
  Tensor result = Tensor::zeros(tensor.dtype(), shape);
  const auto outer = static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.begin() + axis, std::int64_t{1}, std::multiplies<>()));
  const std::size_t from = tensor.bytes().size() / outer;
  const std::size_t to = result.bytes().size() / outer;
  const std::size_t entry = from / static_cast<std::size_t>(old);
  const std::byte* src = tensor.bytes().data();
  std::byte* dst = result.mutable_bytes().data();
  for (std::size_t i = 0; i < outer; ++i, src += from, dst += to) {
    std::memcpy(dst, src, from);
    for (std::size_t at = from; repeat && at < to; at += entry) {
      std::memcpy(dst + at, src + from - entry, entry);
    }
  }
  return result;
}

class Padder {
 public:
  Padder(Graph& graph, std::int64_t multiple) : graph_(graph), multiple_(multiple), sets_(graph) {}

  bool run() {
    std::map<ValueId, std::int64_t> missing;  // by set
    for (const ChannelLayer& layer : sets_.layers()) {
      const std::int64_t over = layer.out % multiple_;
      if (layer.depthwise && over != 0) missing[layer.out_set] = multiple_ - over;
    }
    std::erase_if(missing, [&](const auto& each) { return !sets_.is_free(each.first); });
    for (const ChannelLayer& layer : sets_.layers()) {
      const auto out = missing.find(layer.out_set);
      const auto in = missing.find(layer.in_set);
      if (out != missing.end()) widen_outputs(layer, out->second);
      if (in != missing.end() && !layer.depthwise) pad_input(layer.node, 1, 1, in->second);
    }
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const auto found = missing.find(sets_.set_of(static_cast<ValueId>(i)));
      if (found != missing.end()) widen_type(graph_[static_cast<ValueId>(i)], found->second);
    }
    return !missing.empty();
  }

 private:
  static void widen_type(Value& value, std::int64_t count) {
    if (value.type.shape) (*value.type.shape)[1].value += count;
  }

  Node& node(NodeId id) { return graph_.nodes[static_cast<std::size_t>(id)]; }

  void widen_outputs(const ChannelLayer& layer, std::int64_t count) {
    pad_input(layer.node, 1, 0, count);
    if (node(layer.node).input(2) != kNoValue) pad_input(layer.node, 2, 0, count);
    if (layer.depthwise) node(layer.node).set("group", layer.out + count);
  }

  /// The constant behind an input, which may be read by way of a DequantizeLinear.
  void pad_input(NodeId id, std::size_t input, std::int64_t axis, std::int64_t count) {
    const NodeId dq = sets_.dequantizer(node(id).inputs[input]);
    if (dq < 0) return replace(node(id).inputs[input], axis, count, false);
    Node& grid = node(dq);
    replace(grid.inputs[0], axis, count, false);
    const Tensor& scale = *graph_.constant(grid.inputs[1]);
    if (scale.rank() == 0 || grid.get_int("axis", 1) != axis) return;
    // The last channel's scale again: that of a bias stays its weight's times its input's.
    replace(grid.inputs[1], 0, count, true);
    if (grid.input(2) != kNoValue) replace(grid.inputs[2], 0, count, true);
  }

  void replace(ValueId& input, std::int64_t axis, std::int64_t count, bool repeat) {
    const std::string name = graph_[input].name + "_padded";
    input = graph_.add_constant(name, padded(*graph_.constant(input), axis, count, repeat));
  }

  Graph& graph_;
  std::int64_t multiple_;
  ChannelSets sets_;
};

}  // namespace
}  // namespace lower

void pad_channels(Model& qdq, std::int64_t multiple) {
  if (multiple <= 1) return;
  infer_types(qdq);
  if (!lower::Padder(qdq.graph, multiple).run()) return;
  compact(qdq.graph, {});
  infer_types(qdq);
  verify(qdq);
}

}  // namespace quench
