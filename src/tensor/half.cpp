// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 and the 16-bit floats.
#include "tensor/half.h"

#include <bit>
#include <cmath>

namespace quench {

float half_to_float(std::uint16_t bits) noexcept {
  const bool negative = (bits & 0x8000U) != 0;
  const unsigned exponent = (bits >> 10U) & 0x1fU;
  const unsigned mantissa = bits & 0x3ffU;
  float magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = std::bit_cast<float>(0x7f800000U | (mantissa << 13U));
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::bit_cast<float>(((exponent + 112U) << 23U) | (mantissa << 13U));
  }
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) |
                              (negative ? 0x80000000U : 0U));
}

std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t rest = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (rest > 0x7f800000U) {
    half = 0x7e00U;
  } else if (rest >= 0x477ff000U) {  // 65520 and above round to infinity
    half = 0x7c00U;
  } else if (rest < 0x38800000U) {  // subnormal in half: let the FPU round to multiples of 2^-24
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(rest), 24)));
  } else {
    const std::uint32_t odd = (rest >> 13U) & 1U;
    half = (rest - 0x38000000U + 0xfffU + odd) >> 13U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float bfloat16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t float_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace quench
