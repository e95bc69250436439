// SPDX-License-Identifier: Apache-2.0
// What loops.h does, for tensors that lie on a GPU: dense, in rows with one scale each.
#pragma once

#include <array>

#include "qat/engine/loops.h"
#include "qat/engine/torch.h"

namespace quench::qat {

/// Everything lies on one GPU; `scale` and `zero_point` have an element for each row.
struct GpuRows {
  at::Tensor x;
  at::Tensor scale;
  at::Tensor zero_point;
  std::array<double, 2> steps;
  double most;  ///< the greatest number that may be reached
};

/// Also brings back scales that have left their bounds.
at::Tensor fake_quantize_on_gpu(const GpuRows& rows);

struct WantedGradients {
  bool by_scale;
  bool by_offset;
  double factor;
};
/// Of x, and where they are wanted those by scale and by offset, a row each.
struct GpuGradients {
  at::Tensor x;
  at::Tensor scale;
  at::Tensor offset;
};
GpuGradients fake_quantize_gradient_on_gpu(const GpuRows& rows, const at::Tensor& gradient,
                                           const WantedGradients& wanted);

/// Rounded to multiples of the product of two scales; the gradient passes as it is.
at::Tensor round_bias_on_gpu(const at::Tensor& bias, const at::Tensor& weight_scale,
                             const at::Tensor& input_scale);

at::Tensor mix_on_gpu(const at::Tensor& one, const at::Tensor& other, const Chance& chance);
/// The gradients of both.
std::array<at::Tensor, 2> unmix_on_gpu(const at::Tensor& gradient, const Chance& chance);

}  // namespace quench::qat
