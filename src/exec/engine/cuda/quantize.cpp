// SPDX-License-Identifier: Apache-2.0
// Launches the kernels of quantize.cu.
#include "exec/engine/cuda/quantize.h"

#include <algorithm>

#include "exec/engine/cuda/kernels.h"

namespace quench::exec {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 65536;

Launch launch_of(const at::Tensor& tensor) {
  return {.x = std::min((tensor.numel() + kThreads - 1) / kThreads, kMostBlocks),
          .threads = kThreads};
}

bool is_byte(at::ScalarType type) { return type == at::kByte || type == at::kChar; }

/// One scale, and a zero point that can be read without waiting for the GPU.
bool one_for_all(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero) {
  return x.is_cuda() && x.numel() > 0 && x.is_non_overlapping_and_dense() && scale.numel() == 1 &&
         scale.scalar_type() == at::kFloat &&
         (!zero.defined() || (zero.numel() == 1 && !zero.is_cuda()));
}

int zero_of(const at::Tensor& zero) { return zero.defined() ? zero.item<int>() : 0; }

}  // namespace

std::optional<at::Tensor> quantize_on_gpu(const at::Tensor& x, const at::Tensor& scale,
                                          const at::Tensor& zero, at::ScalarType type) {
  if (!one_for_all(x, scale, zero) || !is_byte(type) || x.scalar_type() != at::kFloat) return {};
  const at::Tensor own = scale.to(x.device());
  at::Tensor result = at::empty_like(x, x.options().dtype(type));
  cuda_kernels("quantize", x.device().index())
      ->launch(type == at::kByte ? "quantize_u8" : "quantize_s8", launch_of(x), x.data_ptr(),
               x.numel(), own.data_ptr(), static_cast<float>(zero_of(zero)), result.data_ptr());
  return result;
}

std::optional<at::Tensor> dequantize_on_gpu(const at::Tensor& x, const at::Tensor& scale,
                                            const at::Tensor& zero) {
  if (!one_for_all(x, scale, zero) || !is_byte(x.scalar_type())) return {};
  const at::Tensor own = scale.to(x.device());
  at::Tensor result = at::empty_like(x, x.options().dtype(at::kFloat));
  cuda_kernels("quantize", x.device().index())
      ->launch(x.scalar_type() == at::kByte ? "dequantize_u8" : "dequantize_s8", launch_of(x),
               x.data_ptr(), x.numel(), own.data_ptr(), zero_of(zero), result.data_ptr());
  return result;
}

}  // namespace quench::exec
