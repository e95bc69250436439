// SPDX-License-Identifier: Apache-2.0
// Values of a Q/DQ graph that must have the same number of channels.
#pragma once

#include <vector>

#include "quench/model.h"

namespace quench::passes {

/// A convolution with constants of its own: weights without zero points, and perhaps a bias.
struct ChannelLayer {
  NodeId node = -1;
  bool depthwise = false;
  std::int64_t out = 0;        ///< channels of its result
  ValueId in_set = kNoValue;   ///< the set of what it reads
  ValueId out_set = kNoValue;  ///< the set of what it makes
};

/// Sets of values that are tied by depthwise convolutions and by nodes that treat every channel
/// alike. Between them lie convolutions that can take any number of channels.
class ChannelSets {
 public:
  explicit ChannelSets(const Graph& graph);

  /// The values there were when the sets were made.
  std::size_t size() const noexcept { return parent_.size(); }
  const std::vector<ChannelLayer>& layers() const noexcept { return layers_; }
  /// Nothing but the layers cares how many channels the set has.
  bool is_free(ValueId set) const { return !fixed_[static_cast<std::size_t>(set)]; }
  /// The channels of this value stay as they are.
  void hold(ValueId value) { fixed_[static_cast<std::size_t>(set_of(value))] = true; }
  /// The set of a value, called by one of its values.
  ValueId set_of(ValueId value) const;
  /// The DequantizeLinear that makes a constant's floats; -1: none does.
  NodeId dequantizer(ValueId value) const;
  /// The numbers that a layer computes with, as they are stored; null: not a constant.
  const Tensor* constant_behind(ValueId value) const;

 private:
  void read(NodeId id, const Node& node);
  bool read_layer(NodeId id, const Node& node);
  void fix(const Node& node);
  bool is_own_constant(ValueId value) const;
  bool has_even_scales(const Node& dequantize, const Tensor& stored) const;
  std::int64_t channels(ValueId value) const;
  bool ties_all(const Node& node) const;
  void unite(ValueId a, ValueId b);

  const Graph& graph_;
  Uses uses_;
  std::vector<ValueId> parent_;
  std::vector<bool> fixed_;
  std::vector<ChannelLayer> layers_;
};

}  // namespace quench::passes
