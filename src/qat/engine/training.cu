// SPDX-License-Identifier: Apache-2.0
// The loops of qat/engine/loops.cpp on a GPU: one pass each over a tensor.
#include <cstdint>

#include "qat/engine/chance.h"

using namespace quench::qat;
using std::int64_t;

namespace {

constexpr int kAhead = 8;  // loads of a thread that are under way at once
constexpr int kWarp = 32;

struct Scaling {
  float scale;
  float low;
  float high;
};

/// A scale that is learned may have left its bounds: it is positive, and reaches `most` at most.
__device__ Scaling scaling_of(const float* scale, const float* zero_point, int64_t row, float low,
                              float high, double most) {
  const float zero = zero_point[row];
  float own = fmaxf(scale[row], 1e-12F);
  const double steps = high - zero;
  if (steps > 0 && isfinite(most) && own * steps > most) own = static_cast<float>(most / steps);
  return {own, low - zero, high - zero};
}

__device__ float saturate(float value, const Scaling& scaling) {
  const float raised = value < scaling.low ? scaling.low : value;
  return raised > scaling.high ? scaling.high : raised;
}

/// Calls body(place) for the elements of this block's stretch, some at once.
template <typename Load, typename Body>
__device__ void for_each(int64_t begin, int64_t end, const Load& load, const Body& body) {
  for (int64_t i = begin + threadIdx.x; i < end; i += static_cast<int64_t>(blockDim.x) * kAhead) {
    float ahead[kAhead][2];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + static_cast<int64_t>(k) * blockDim.x;
      if (at < end) load(at, ahead[k]);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + static_cast<int64_t>(k) * blockDim.x;
      if (at < end) body(at, ahead[k]);
    }
  }
}

__device__ double block_sum(double value, double* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value += __shfl_down_sync(0xffffffffU, value, step);
  }
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarp; ++i) sum += shared[i];
  return sum;
}

}  // namespace

/// Blocks: stretches of a row, rows. Rounding halves to even, division as IEEE has it: what
/// QuantizeLinear and DequantizeLinear make of it.
extern "C" __global__ void fake_quantize(const float* src, int64_t columns, float* scale,
                                         const float* zero_point, float low, float high,
                                         double most, float* dst) {
  const Scaling scaling = scaling_of(scale, zero_point, blockIdx.y, low, high, most);
  // The others find the same, from what was there or from this.
  if (blockIdx.x == 0 && threadIdx.x == 0) scale[blockIdx.y] = scaling.scale;
  const int64_t begin = blockIdx.x * kStretch;
  const int64_t end = begin + kStretch < columns ? begin + kStretch : columns;
  const float* from = src + blockIdx.y * columns;
  float* to = dst + blockIdx.y * columns;
  for_each(
      begin, end, [&](int64_t at, float* ahead) { ahead[0] = from[at]; },
      [&](int64_t at, const float* ahead) {
        to[at] = rintf(saturate(__fdiv_rn(ahead[0], scaling.scale), scaling)) * scaling.scale;
      });
}

/// The gradients by scale and by offset are added up where they are wanted.
extern "C" __global__ void fake_quantize_gradient(const float* src, const float* gradient,
                                                  int64_t columns, const float* scale,
                                                  const float* zero_point, float low, float high,
                                                  double most, float factor, float* dsrc,
                                                  float* dscale, float* doffset) {
  __shared__ double shared[kWarp];
  const Scaling scaling = scaling_of(scale, zero_point, blockIdx.y, low, high, most);
  const int64_t begin = blockIdx.x * kStretch;
  const int64_t end = begin + kStretch < columns ? begin + kStretch : columns;
  const int64_t row = blockIdx.y * columns;
  float by_scale = 0;
  float by_offset = 0;
  for_each(
      begin, end,
      [&](int64_t at, float* ahead) {
        ahead[0] = src[row + at];
        ahead[1] = gradient[row + at];
      },
      [&](int64_t at, const float* ahead) {
        const float value = __fdiv_rn(ahead[0], scaling.scale);
        const float kept = saturate(value, scaling);
        const bool inside = kept == value;
        const float passed = inside ? ahead[1] : 0.0F;
        dsrc[row + at] = passed;
        by_scale += ahead[1] * (rintf(kept) - (inside ? value : 0.0F));
        by_offset += ahead[1] - passed;
      });
  if (dscale != nullptr) {
    const double sum = block_sum(by_scale, shared);
    if (threadIdx.x == 0) atomicAdd(dscale + blockIdx.y, static_cast<float>(sum) * factor);
  }
  if (doffset != nullptr) {
    const double sum = block_sum(by_offset, shared);
    if (threadIdx.x == 0) atomicAdd(doffset + blockIdx.y, static_cast<float>(sum) * factor);
  }
}

/// Biases on the scale of the products that they are added to.
extern "C" __global__ void round_bias(const float* src, int64_t count, const float* weight_scale,
                                      int64_t weight_scales, const float* input_scale,
                                      float* dst) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  const float scale = weight_scale[weight_scales == 1 ? 0 : i] * input_scale[0];
  const double steps = rint(static_cast<double>(src[i]) / static_cast<double>(scale));
  dst[i] = static_cast<float>(steps) * scale;
}

/// dst = taken ? one : other, by chance of the seed and the place.
extern "C" __global__ void mix(const float* one, const float* other, int64_t count, unsigned bound,
                               unsigned long long seed, float* dst) {
  const unsigned own = seed_of_stretch(seed, blockIdx.x);
  const int64_t begin = blockIdx.x * kStretch;
  const int64_t end = begin + kStretch < count ? begin + kStretch : count;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    dst[i] = scrambled(own, static_cast<unsigned>(i - begin)) < bound ? one[i] : other[i];
  }
}

extern "C" __global__ void unmix(const float* gradient, int64_t count, unsigned bound,
                                 unsigned long long seed, float* done, float* dother) {
  const unsigned own = seed_of_stretch(seed, blockIdx.x);
  const int64_t begin = blockIdx.x * kStretch;
  const int64_t end = begin + kStretch < count ? begin + kStretch : count;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const bool taken = scrambled(own, static_cast<unsigned>(i - begin)) < bound;
    done[i] = taken ? gradient[i] : 0.0F;
    dother[i] = taken ? 0.0F : gradient[i];
  }
}
