// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as bit patterns: the arithmetic happens in float32.
#pragma once

#include <cstdint>

namespace quench {

float half_to_float(std::uint16_t bits) noexcept;
/// Rounds to nearest, ties to even; overflow gives infinity.
std::uint16_t float_to_half(float value) noexcept;
float bfloat16_to_float(std::uint16_t bits) noexcept;
/// Rounds to nearest, ties to even.
std::uint16_t float_to_bfloat16(float value) noexcept;

}  // namespace quench
