// SPDX-License-Identifier: Apache-2.0
// The grids that QuantizeLinear and DequantizeLinear nodes put values on.
#pragma once

#include "exec/rewrites/rewrite.h"

namespace quench::exec::rewrites {

/// Constant scale and zero point of an 8-bit value, as a node refers to them.
struct Grid {
  ValueId scale = kNoValue;
  ValueId zero = kNoValue;  ///< kNoValue: zero, of type uint8
  DType dtype = DType::UInt8;
  bool per_tensor = true;
  std::int64_t axis = 1;

  /// As the parameters of a result.
  ByteInput input() const { return {kNoValue, scale, zero}; }
};

/// A value on a grid: `value` holds the integers.
struct Quantised {
  ValueId value = kNoValue;
  Grid grid;

  ByteInput input() const { return {value, grid.scale, grid.zero}; }
};

/// The grid of a QuantizeLinear or DequantizeLinear node with constant parameters and 8 bits.
std::optional<Grid> grid_of(const Rewriter& rewriter, const Node& node);
/// What lies behind `value`, when a DequantizeLinear to an 8-bit grid makes it.
std::optional<Quantised> dequantised(const Rewriter& rewriter, ValueId value);
/// Likewise for one scale a tensor.
std::optional<Quantised> dequantised_per_tensor(const Rewriter& rewriter, ValueId value);
/// Equal numbers, whatever constants hold them.
bool same_grid(const Rewriter& rewriter, const Grid& a, const Grid& b);
/// The one scale and zero point of a grid.
double scale_of(const Rewriter& rewriter, const Grid& grid);
std::int64_t zero_of(const Rewriter& rewriter, const Grid& grid);
/// The smallest and largest integer of the grid's type.
std::pair<std::int64_t, std::int64_t> limits_of(const Grid& grid);

}  // namespace quench::exec::rewrites
