// SPDX-License-Identifier: Apache-2.0
// The quantisation parameters of QuantizeLinear and DequantizeLinear nodes.
#pragma once

#include "exec/rewrites/rewrite.h"

namespace quench::exec::rewrites {

/// Constant scale and zero point of an 8-bit value, as a node refers to them.
struct ParamValues {
  ValueId scale = kNoValue;
  ValueId zero = kNoValue;  ///< kNoValue: zero, of type uint8
  DType dtype = DType::UInt8;
  bool per_tensor = true;
  std::int64_t axis = 1;

  /// As the parameters of a result.
  ByteInput input() const { return {kNoValue, scale, zero}; }
};

/// A quantised value: `value` holds the integers.
struct Quantised {
  ValueId value = kNoValue;
  ParamValues params;

  ByteInput input() const { return {value, params.scale, params.zero}; }
};

/// Those of a QuantizeLinear or DequantizeLinear node, when they are constants for 8 bits.
std::optional<ParamValues> params_of(const Rewriter& rewriter, const Node& node);
/// What lies behind `value`, when a DequantizeLinear of 8 bits makes it.
std::optional<Quantised> dequantised(const Rewriter& rewriter, ValueId value);
/// Likewise for one scale a tensor.
std::optional<Quantised> dequantised_per_tensor(const Rewriter& rewriter, ValueId value);
/// Equal numbers, whatever constants hold them.
bool same_params(const Rewriter& rewriter, const ParamValues& a, const ParamValues& b);
/// The one scale.
double scale_of(const Rewriter& rewriter, const ParamValues& params);

}  // namespace quench::exec::rewrites
