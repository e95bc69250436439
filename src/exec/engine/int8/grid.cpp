// SPDX-License-Identifier: Apache-2.0
// Reads grids.
#include "exec/engine/int8/grid.h"

#include <cmath>

namespace quench::exec {

std::optional<ByteGrid> take_grid(const OpContext& context, std::size_t scale, std::size_t zero) {
  return take_grid(context, scale, zero, DType::UInt8);
}

std::optional<ByteGrid> take_grid(const OpContext& context, std::size_t scale, std::size_t zero,
                                  DType otherwise) {
  const at::Tensor steps = context.constant(scale);
  const at::Tensor origin = context.constant(zero);
  if (!steps.defined() || steps.numel() != 1 || (context.has_input(zero) && !origin.defined())) {
    return std::nullopt;
  }
  ByteGrid grid;
  grid.scale = steps.to(at::kFloat).reshape({}).item<float>();
  grid.type = otherwise == DType::Int8 ? at::kChar : at::kByte;
  if (origin.defined()) {
    if (origin.numel() != 1) return std::nullopt;
    grid.type = origin.scalar_type();
    grid.zero = origin.to(at::kInt).reshape({}).item<std::int32_t>();
  }
  const bool bytes = grid.type == at::kByte || grid.type == at::kChar;
  if (!bytes || !std::isfinite(grid.scale) || grid.scale <= 0) return std::nullopt;
  context.take_constant(scale);
  if (origin.defined()) context.take_constant(zero);
  return grid;
}

}  // namespace quench::exec
