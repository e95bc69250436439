// SPDX-License-Identifier: Apache-2.0
// The integers of a scale.
#include <algorithm>

#include "quench/quant.h"

namespace quench {
namespace {

/// Bits that a shift survives, whatever a caller has put in.
int bits_of(const QuantSpec& spec) noexcept { return std::clamp(spec.bits, 1, 32); }

}  // namespace

std::int64_t QuantSpec::q_min() const noexcept {
  const std::int64_t lowest = is_signed ? -(std::int64_t{1} << (bits_of(*this) - 1)) : 0;
  return lowest + (narrow ? 1 : 0);
}

std::int64_t QuantSpec::q_max() const noexcept {
  return (std::int64_t{1} << (bits_of(*this) - (is_signed ? 1 : 0))) - 1;
}

DType QuantSpec::dtype() const noexcept {
  if (bits <= 8) return is_signed ? DType::Int8 : DType::UInt8;
  return is_signed ? DType::Int16 : DType::UInt16;
}

}  // namespace quench
