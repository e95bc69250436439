// SPDX-License-Identifier: Apache-2.0
// A layer with constant weights: convolutions and matrix products seen alike.
#pragma once

#include "ops/facts.h"
#include "passes/affine.h"

namespace quench::passes {

/// What the passes need to know of a layer whose weight is a constant.
struct Layer {
  ops::WeightKind kind;
  ops::WeightLayout layout;
  bool takes_bias;  ///< it has an input for one
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;    ///< kNoValue: none
  Channels channels;          ///< of its output
  std::vector<double> shift;  ///< the bias as it is added, one number a channel
};

/// The layer, or nothing when the node is none, its weight or bias is no float constant, their
/// shapes do not fit, or (Gemm) its bias is not one number a column.
std::optional<Layer> layer_of(const Rewriter& rewriter, const Node& node);

/// The elements of a layer's weight and the channels each of them joins.
class WeightMap {
 public:
  struct Channels {
    std::size_t out;
    std::size_t in;
  };

  WeightMap(const Layer& layer, const Tensor& weight);

  /// Calls `visit(element, channels)` in storage order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    std::size_t element = 0;
    for (std::size_t row = 0; row < rows_; ++row) {
      // A row of a grouped layer has columns for its own group only.
      const std::size_t first = row / rows_a_group_ * columns_;
      for (std::size_t column = first; column < first + columns_; ++column) {
        const Channels channels = rows_are_outputs_ ? Channels{.out = row, .in = column}
                                                    : Channels{.out = column, .in = row};
        for (std::size_t i = 0; i < inner_; ++i) visit(element++, channels);
      }
    }
  }

 private:
  bool rows_are_outputs_;
  std::size_t rows_;
  std::size_t columns_;
  std::size_t inner_;  ///< elements a row and column have: the kernel's size
  std::size_t rows_a_group_;
};

/// The weight with each output channel multiplied by its scale, rounded once; nothing when a
/// number would leave the range of the type.
std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Layer& layer,
                                    const std::vector<double>& scale);
/// Numbers as a vector of `dtype`; nothing when one would leave its range.
std::optional<Tensor> rounded(const std::vector<double>& numbers, Shape shape, DType dtype);

}  // namespace quench::passes
