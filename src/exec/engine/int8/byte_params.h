// SPDX-License-Identifier: Apache-2.0
// Scales and zero points that kernels know before they run.
#pragma once

#include "exec/engine/kernel.h"

namespace quench::exec {

/// Scale and zero point of a byte tensor.
struct ByteParams {
  float scale = 1;
  std::int32_t zero = 0;
  at::ScalarType type = at::kByte;

  std::int32_t least() const noexcept { return type == at::kChar ? -128 : 0; }
  std::int32_t greatest() const noexcept { return type == at::kChar ? 127 : 255; }
  /// What turns the type's bytes into those of uint8: adding 128 is flipping the highest bit.
  std::uint8_t flip() const noexcept { return type == at::kChar ? 0x80 : 0; }
  /// The zero point of the flipped bytes.
  float flipped_zero() const noexcept {
    return static_cast<float>(type == at::kChar ? zero + 128 : zero);
  }
};

/// What inputs `scale` and `zero` of a node say, when they are constants; both are taken.
std::optional<ByteParams> take_params(const OpContext& context, std::size_t scale,
                                      std::size_t zero);
/// The same for a node that leaves the type to its data input when it has no zero point.
std::optional<ByteParams> take_params(const OpContext& context, std::size_t scale, std::size_t zero,
                                      DType otherwise);

}  // namespace quench::exec
