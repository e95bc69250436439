// SPDX-License-Identifier: Apache-2.0
// The loops, written so that compilers make vectors of them.
#include "qat/engine/loops.h"

#include <algorithm>

#include "base/cpu.h"

namespace quench::qat {
namespace {

/// Sums are kept in so many places, which fill vectors.
constexpr std::int64_t kLanes = 16;
/// Added and taken off again it rounds to the nearest integer, halves to even, up to 2^22.
constexpr float kMagic = 12582912.0F;

inline float saturate(float value, const Scaling& scaling) {
  const float raised = value < scaling.low ? scaling.low : value;
  return raised > scaling.high ? scaling.high : raised;
}

inline float rounded(float value) { return (value + kMagic) - kMagic; }

}  // namespace

QUENCH_MULTIVERSION(void, fake_quantize_loop,
                    (const float* src, std::int64_t count, const Scaling& scaling, float* dst),
                    (src, count, scaling, dst)) {
  for (std::int64_t i = 0; i < count; ++i) {
    dst[i] = rounded(saturate(src[i] / scaling.scale, scaling)) * scaling.scale;
  }
}

QUENCH_MULTIVERSION(ScalingGradient, fake_quantize_gradient,
                    (const float* src, const float* gradient, std::int64_t count,
                     const Scaling& scaling, float* dsrc),
                    (src, gradient, count, scaling, dsrc)) {
  float by_scale[kLanes] = {};
  float by_offset[kLanes] = {};
  const auto add = [&](std::int64_t i, std::int64_t lane) {
    const float value = src[i] / scaling.scale;
    const float kept = saturate(value, scaling);
    const bool inside = kept == value;
    const float passed = inside ? gradient[i] : 0.0F;
    dsrc[i] = passed;
    by_scale[lane] += gradient[i] * (rounded(kept) - (inside ? value : 0.0F));
    by_offset[lane] += gradient[i] - passed;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (; i < count; ++i) add(i, i % kLanes);
  ScalingGradient sums;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    sums.scale += static_cast<double>(by_scale[lane]);
    sums.offset += static_cast<double>(by_offset[lane]);
  }
  return sums;
}

QUENCH_MULTIVERSION(void, mix_loop,
                    (const float* one, const float* other, std::int64_t count,
                     const StretchChance& chance, float* dst),
                    (one, other, count, chance, dst)) {
  const auto [bound, seed] = chance;
  for (std::int64_t i = 0; i < count; ++i) {
    const float kept = one[i];
    const float given = other[i];
    dst[i] = scrambled(seed, static_cast<std::uint32_t>(i)) < bound ? kept : given;
  }
}

QUENCH_MULTIVERSION(void, unmix_loop,
                    (const float* gradient, std::int64_t count, const StretchChance& chance,
                     float* done, float* dother),
                    (gradient, count, chance, done, dother)) {
  const auto [bound, seed] = chance;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool taken = scrambled(seed, static_cast<std::uint32_t>(i)) < bound;
    const float value = gradient[i];
    done[i] = taken ? value : 0.0F;
    dother[i] = taken ? 0.0F : value;
  }
}

}  // namespace quench::qat
