// SPDX-License-Identifier: Apache-2.0
// A layer with constant weights: Conv, ConvTranspose, Gemm or MatMul seen alike.
#pragma once

#include "passes/affine.h"

namespace quench::passes {

/// What the passes need to know of a layer whose weight is a constant.
struct Layer {
  enum class Kind { Conv, ConvTranspose, Gemm, MatMul };
  Kind kind;
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;    ///< kNoValue: none
  Channels channels;          ///< of its output
  std::vector<double> shift;  ///< the bias as it is added, one number a channel
};

/// The layer, or nothing when the node is none, its weight or bias is no float constant, their
/// shapes do not fit, or (Gemm) its bias is not one number a column.
std::optional<Layer> layer_of(const Rewriter& rewriter, const Node& node);

/// The weight with each output channel multiplied by its scale, rounded once; nothing when a
/// number would leave the range of the type.
std::optional<Tensor> scaled_weight(const Rewriter& rewriter, const Node& node, const Layer& layer,
                                    const std::vector<double>& scale);
/// Numbers as a vector of `dtype`; nothing when one would leave its range.
std::optional<Tensor> rounded(const std::vector<double>& numbers, Shape shape, DType dtype);

}  // namespace quench::passes
