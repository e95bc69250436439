// SPDX-License-Identifier: Apache-2.0
// Which elements of a tensor are taken by chance: decided by a seed and an element's place, so that
// threads do not matter and a backward pass finds the same ones. GPU kernels read this file too.
#pragma once

#include <cstdint>

namespace quench::qat {

/// Elements that are taken together, with a seed of their own; so are their sums.
inline constexpr std::int64_t kStretch = 16384;

/// 32 bits that look random, of a seed and a place; multiplications of 32 bits fill vectors.
inline std::uint32_t scrambled(std::uint32_t seed, std::uint32_t place) {
  std::uint32_t bits = seed + place * 0x9E3779B9U;
  bits = (bits ^ (bits >> 16U)) * 0x21F0AAADU;
  bits = (bits ^ (bits >> 15U)) * 0x735A2D97U;
  return bits ^ (bits >> 15U);
}

/// The seed of a stretch, by its place among all.
inline std::uint32_t seed_of_stretch(std::uint64_t seed, std::uint64_t place) {
  const std::uint64_t own = (seed + place) * 0x9E3779B97F4A7C15U;
  return static_cast<std::uint32_t>(own ^ (own >> 32U));
}

/// What the bits of a taken element are below, where a share between 0 and 1 is taken.
inline std::uint32_t bound_of_share(double share) {
  const double kept = share < 0.0 ? 0.0 : share;
  return static_cast<std::uint32_t>((kept > 1.0 ? 1.0 : kept) * 4294967295.0);
}

}  // namespace quench::qat
