// SPDX-License-Identifier: Apache-2.0
// The plain forms of the heavy operators, which the fast ones fall back to.
#pragma once

#include "exec/engine/kernel.h"

namespace quench::exec {

Kernel make_reference_conv(const OpContext& context);
Kernel make_reference_conv_transpose(const OpContext& context);
Kernel make_reference_matmul(const OpContext& context);
Kernel make_reference_gemm(const OpContext& context);

/// A convolution as ONNX defines it, of any type libtorch can multiply. `bias` may be undefined.
struct ConvAttributes;
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const ConvAttributes& attributes);

}  // namespace quench::exec
