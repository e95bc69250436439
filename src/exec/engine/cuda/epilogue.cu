// SPDX-License-Identifier: Apache-2.0
// What follows a convolution, in place and in one pass: bias, residual, and the ends of a range.
#include <cstdint>

using std::int64_t;

namespace {

constexpr int kBytes = 16;  // of a load

__device__ float as_float(float value) { return value; }
__device__ float as_float(unsigned short half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}
__device__ void put(float value, float& to) { to = value; }
__device__ void put(float value, unsigned short& to) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to) : "f"(value));
}

template <typename T>
struct alignas(kBytes) Vector {
  T at[kBytes / sizeof(T)];
};

/// `inner` elements that follow each other share a channel.
template <typename T>
__device__ void finish(T* y, const T* bias, const T* residual, int64_t count, int64_t channels,
                       int64_t inner, float low, float high) {
  constexpr int kWidth = kBytes / sizeof(T);
  const int64_t vectors = count / kWidth;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const auto channel_of = [&](int64_t i) -> int64_t {
    if (count < (1LL << 31)) {
      const auto place = static_cast<unsigned>(i);
      return inner == 1 ? place % static_cast<unsigned>(channels)
                        : place / static_cast<unsigned>(inner) % static_cast<unsigned>(channels);
    }
    return i / inner % channels;
  };
  const auto one = [&](T& value, int64_t channel, const T* added) {
    float sum = as_float(value);
    if (bias != nullptr) sum += as_float(bias[channel]);
    if (added != nullptr) sum += as_float(*added);
    sum = sum < low ? low : sum;
    put(sum > high ? high : sum, value);
  };
  // Where a vector lies in one stretch of channels its first element's is all that is looked for.
  const bool together = inner == 1 ? channels % kWidth == 0 : inner % kWidth == 0;
  for (int64_t i = first; i < vectors; i += stride) {
    auto own = reinterpret_cast<const Vector<T>*>(y)[i];
    Vector<T> added;
    if (residual != nullptr) added = reinterpret_cast<const Vector<T>*>(residual)[i];
    const int64_t channel = together ? channel_of(i * kWidth) : 0;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const int64_t mine = !together    ? channel_of(i * kWidth + k)
                           : inner == 1 ? channel + k
                                        : channel;
      one(own.at[k], mine, residual != nullptr ? added.at + k : nullptr);
    }
    reinterpret_cast<Vector<T>*>(y)[i] = own;
  }
  const int64_t rest = vectors * kWidth + first;
  if (rest < count) one(y[rest], channel_of(rest), residual != nullptr ? residual + rest : nullptr);
}

}  // namespace

extern "C" __global__ void finish_float(float* y, const float* bias, const float* residual,
                                        int64_t count, int64_t channels, int64_t inner, float low,
                                        float high) {
  finish(y, bias, residual, count, channels, inner, low, high);
}
extern "C" __global__ void finish_half(unsigned short* y, const unsigned short* bias,
                                       const unsigned short* residual, int64_t count,
                                       int64_t channels, int64_t inner, float low, float high) {
  finish(y, bias, residual, count, channels, inner, low, high);
}
