// SPDX-License-Identifier: Apache-2.0
// Reads scales and zero points.
#include "exec/engine/int8/byte_params.h"

#include <cmath>

namespace quench::exec {

std::optional<ByteParams> take_params(const OpContext& context, std::size_t scale,
                                      std::size_t zero) {
  return take_params(context, scale, zero, DType::UInt8);
}

std::optional<ByteParams> take_params(const OpContext& context, std::size_t scale, std::size_t zero,
                                      DType otherwise) {
  const at::Tensor steps = context.constant(scale);
  const at::Tensor origin = context.constant(zero);
  if (!steps.defined() || steps.numel() != 1 || (context.has_input(zero) && !origin.defined())) {
    return std::nullopt;
  }
  ByteParams params;
  params.scale = steps.to(at::kFloat).reshape({}).item<float>();
  params.type = otherwise == DType::Int8 ? at::kChar : at::kByte;
  if (origin.defined()) {
    if (origin.numel() != 1) return std::nullopt;
    params.type = origin.scalar_type();
    params.zero = origin.to(at::kInt).reshape({}).item<std::int32_t>();
  }
  const bool bytes = params.type == at::kByte || params.type == at::kChar;
  if (!bytes || !std::isfinite(params.scale) || params.scale <= 0) return std::nullopt;
  context.take_constant(scale);
  if (origin.defined()) context.take_constant(zero);
  return params;
}

}  // namespace quench::exec
