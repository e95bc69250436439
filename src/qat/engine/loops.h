// SPDX-License-Identifier: Apache-2.0
// Fake quantisation and its gradients over plain arrays: one pass each.
#pragma once

#include <cstdint>

#include "qat/engine/chance.h"

namespace quench::qat {

/// A scale, and the least and greatest integer with the zero point already taken off.
struct Scaling {
  float scale = 1;
  float low = 0;
  float high = 0;
};

/// What the gradients of a stretch of elements sum up to.
struct ScalingGradient {
  double scale = 0;
  double offset = 0;
};

/// dst = saturate(round(src / scale)) * scale, rounding halves to even: what QuantizeLinear and
/// DequantizeLinear make of it. NaN stays.
void fake_quantize_loop(const float* src, std::int64_t count, const Scaling& scaling, float* dst);

/// At most kStretch elements: `dsrc` gets the gradient of elements that do not saturate. The sums
/// are those of the gradients by the scale, and by an offset that moves both ends of the range.
ScalingGradient fake_quantize_gradient(const float* src, const float* gradient, std::int64_t count,
                                       const Scaling& scaling, float* dsrc);

/// The elements of a tensor that are taken by chance.
struct Chance {
  double share = 0;  ///< of all
  std::uint64_t seed = 0;
};
/// The same for one stretch of it.
struct StretchChance {
  std::uint32_t bound = 0;  ///< of `bound_of_share`
  std::uint32_t seed = 0;   ///< of `seed_of_stretch`
};

/// At most kStretch elements: dst = taken ? one : other.
void mix_loop(const float* one, const float* other, std::int64_t count, const StretchChance& chance,
              float* dst);
/// The gradients of that.
void unmix_loop(const float* gradient, std::int64_t count, const StretchChance& chance, float* done,
                float* dother);

}  // namespace quench::qat
