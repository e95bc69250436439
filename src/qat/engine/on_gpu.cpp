// SPDX-License-Identifier: Apache-2.0
// Launches the kernels of training.cu.
#include "qat/engine/on_gpu.h"

#include <algorithm>

#include "exec/engine/cuda/kernels.h"

namespace quench::qat {
namespace {

exec::CudaKernels& kernels(const at::Tensor& tensor) {
  return *exec::cuda_kernels("training", tensor.device().index());
}

exec::Launch launch_of(const GpuRows& rows) {
  const std::int64_t count = rows.scale.numel();
  return {.x = (rows.x.numel() / count + kStretch - 1) / kStretch, .y = count, .threads = 256};
}

exec::Launch launch_of(const at::Tensor& tensor) {
  return {.x = (tensor.numel() + kStretch - 1) / kStretch, .threads = 256};
}

}  // namespace

at::Tensor fake_quantize_on_gpu(const GpuRows& rows) {
  at::Tensor y = at::empty_like(rows.x);
  if (y.numel() == 0) return y;
  kernels(y).launch("fake_quantize", launch_of(rows), rows.x.data_ptr(),
                    rows.x.numel() / rows.scale.numel(), rows.scale.data_ptr(),
                    rows.zero_point.data_ptr(), static_cast<float>(rows.steps[0]),
                    static_cast<float>(rows.steps[1]), rows.most, y.data_ptr());
  return y;
}

GpuGradients fake_quantize_gradient_on_gpu(const GpuRows& rows, const at::Tensor& gradient,
                                           const WantedGradients& wanted) {
  GpuGradients result{.x = at::empty_like(rows.x)};
  if (wanted.by_scale) result.scale = at::zeros_like(rows.scale);
  if (wanted.by_offset) result.offset = at::zeros_like(rows.scale);
  if (result.x.numel() == 0) return result;
  kernels(result.x).launch("fake_quantize_gradient", launch_of(rows), rows.x.data_ptr(),
                           gradient.data_ptr(), rows.x.numel() / rows.scale.numel(),
                           rows.scale.data_ptr(), rows.zero_point.data_ptr(),
                           static_cast<float>(rows.steps[0]), static_cast<float>(rows.steps[1]),
                           rows.most, static_cast<float>(wanted.factor), result.x.data_ptr(),
                           wanted.by_scale ? result.scale.data_ptr() : nullptr,
                           wanted.by_offset ? result.offset.data_ptr() : nullptr);
  return result;
}

namespace {

class RoundBias : public torch::autograd::Function<RoundBias> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& bias,
                            const at::Tensor& weight_scale, const at::Tensor& input_scale) {
    at::Tensor result = at::empty_like(bias);
    constexpr int kThreads = 256;
    kernels(bias).launch("round_bias",
                         {.x = (bias.numel() + kThreads - 1) / kThreads, .threads = kThreads},
                         bias.data_ptr(), bias.numel(), weight_scale.data_ptr(),
                         weight_scale.numel(), input_scale.data_ptr(), result.data_ptr());
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor round_bias_on_gpu(const at::Tensor& bias, const at::Tensor& weight_scale,
                             const at::Tensor& input_scale) {
  return RoundBias::apply(bias.contiguous(), weight_scale, input_scale);
}

at::Tensor mix_on_gpu(const at::Tensor& one, const at::Tensor& other, const Chance& chance) {
  at::Tensor result = at::empty_like(one);
  kernels(one).launch("mix", launch_of(one), one.data_ptr(), other.data_ptr(), one.numel(),
                      bound_of_share(chance.share), chance.seed, result.data_ptr());
  return result;
}

std::array<at::Tensor, 2> unmix_on_gpu(const at::Tensor& gradient, const Chance& chance) {
  std::array<at::Tensor, 2> both = {at::empty_like(gradient), at::empty_like(gradient)};
  kernels(gradient).launch("unmix", launch_of(gradient), gradient.data_ptr(), gradient.numel(),
                           bound_of_share(chance.share), chance.seed, both[0].data_ptr(),
                           both[1].data_ptr());
  return both;
}

}  // namespace quench::qat
