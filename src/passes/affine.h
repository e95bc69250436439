// SPDX-License-Identifier: Apache-2.0
// Per-channel scale and shift: what BatchNormalization, Mul, Add, Sub and Div by constants do.
#pragma once

#include "passes/rewriter.h"

namespace quench::passes {

/// y = scale * x + shift, one pair a channel.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;

  static Affine identity(std::size_t channels);
  bool scales() const;  ///< some scale is not one
  bool shifts() const;  ///< some shift is not zero
  bool finite() const;
  /// First this, then `next`.
  void append(const Affine& next);
};

/// The axis that holds the channels of a value, and how much is known of its rank.
struct Channels {
  std::int64_t count = 0;
  bool last = false;                 ///< the last axis; otherwise axis 1
  std::optional<std::int64_t> rank;  ///< nothing: unknown, at least one
};

/// A constant that holds one number, or one a channel, along the channel axis of `channels`;
/// nothing when it would broadcast in another way.
std::optional<std::vector<double>> per_channel(const Tensor& constant, const Channels& channels);

/// What `node` does to its input `x`, when that is a scale and a shift by constants.
std::optional<Affine> affine_of(const Rewriter& rewriter, const Node& node, ValueId x,
                                const Channels& channels);

}  // namespace quench::passes
