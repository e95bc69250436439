// SPDX-License-Identifier: Apache-2.0
// Quantising and dequantising on a GPU in one pass, where libtorch's operators take five.
#pragma once

#include <optional>

#include "exec/engine/torch.h"

namespace quench::exec {

/// Nothing where these kernels have no form for it: another type, or a scale for each channel.
std::optional<at::Tensor> quantize_on_gpu(const at::Tensor& x, const at::Tensor& scale,
                                          const at::Tensor& zero, at::ScalarType type);
std::optional<at::Tensor> dequantize_on_gpu(const at::Tensor& x, const at::Tensor& scale,
                                            const at::Tensor& zero);

}  // namespace quench::exec
