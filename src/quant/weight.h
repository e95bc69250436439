// SPDX-License-Identifier: Apache-2.0
// A constant weight as integers of 1 to 16 bits: one scale for all, for a channel, or for a block.
#pragma once

#include "quench/tensor.h"

namespace quench::quant {

/// What is asked of a weight's integers.
struct WeightSpec {
  int bits = 8;            ///< 1 to 16
  bool symmetric = false;  ///< no zero point
  /// One scale for each index of this axis, or for each block along it; -1: one for the tensor.
  int axis = -1;
  std::int64_t block = 0;    ///< elements along `axis` that share a scale; 0: no blocks
  bool least_error = false;  ///< ranges with the least squared error instead of the whole range
  bool keep_mean = false;    ///< round some elements the other way to keep the mean of each scale
  double step = 0;           ///< scales are not smaller: a coarser scale than the bits allow
  bool operator==(const WeightSpec&) const = default;
};

/// Integers as DequantizeLinear takes them: float = (integers - zero_point) * scale.
struct QuantWeight {
  WeightSpec spec;
  Tensor integers;    ///< int4 up to 4 bits, int8 up to 8, int16 up to 16
  Tensor scale;       ///< float32: a scalar, one a channel, or the weight's shape in blocks
  Tensor zero_point;  ///< of the integers' type and the scale's shape; undefined: zero
  double signal = 0;  ///< sum of the squared weights
  double noise = 0;   ///< sum of the squared errors
  /// Root of noise over signal; 0 for a weight of zeros.
  double relative_error() const;
};

/// Throws Error(Usage) for bits out of range, Error(BadModel) for weights that are not finite.
QuantWeight quantize_weight(const Tensor& weight, const WeightSpec& spec, int threads);
/// The float32 weight that a runtime computes with.
Tensor dequantize_weight(const QuantWeight& weight, int threads);

/// The greatest magnitude among the integers.
int greatest_integer(const QuantWeight& weight);

/// Puts other integers, one int16 an element, onto the scales of a weight, and measures the noise.
QuantWeight with_integers(const Tensor& weight, const QuantWeight& base,
                          std::span<const std::int16_t> integers, int threads);

/// Two elements a byte, low bits first, as ONNX packs int4.
Tensor pack_int4(std::span<const std::int8_t> integers, Shape shape);
std::vector<std::int8_t> unpack_int4(const Tensor& packed);

}  // namespace quench::quant
