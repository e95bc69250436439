// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear with one scale: one pass each, as ONNX writes them down.
#include <cstdint>

using std::int64_t;

namespace {

template <typename To>
__device__ void quantize(const float* src, int64_t count, const float* scale, float zero, float low,
                         float high, To* dst) {
  const float own = *scale;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    const float moved = rintf(__fdiv_rn(src[i], own)) + zero;
    dst[i] = static_cast<To>(fminf(fmaxf(moved, low), high));
  }
}

template <typename From>
__device__ void dequantize(const From* src, int64_t count, const float* scale, int zero,
                           float* dst) {
  const float own = *scale;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    dst[i] = static_cast<float>(static_cast<int>(src[i]) - zero) * own;
  }
}

}  // namespace

extern "C" __global__ void quantize_u8(const float* src, int64_t count, const float* scale,
                                       float zero, unsigned char* dst) {
  quantize(src, count, scale, zero, 0.0F, 255.0F, dst);
}
extern "C" __global__ void quantize_s8(const float* src, int64_t count, const float* scale,
                                       float zero, signed char* dst) {
  quantize(src, count, scale, zero, -128.0F, 127.0F, dst);
}
extern "C" __global__ void dequantize_u8(const unsigned char* src, int64_t count,
                                         const float* scale, int zero, float* dst) {
  dequantize(src, count, scale, zero, dst);
}
extern "C" __global__ void dequantize_s8(const signed char* src, int64_t count, const float* scale,
                                         int zero, float* dst) {
  dequantize(src, count, scale, zero, dst);
}
