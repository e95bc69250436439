// SPDX-License-Identifier: Apache-2.0
// Fake quantisation with gradients.
#pragma once

#include <limits>

#include "qat/engine/torch.h"
#include "quench/quant.h"

namespace quench::qat {

/// Integers of a spec, and how the gradient by the scale is weighted (LSQ's factor).
struct Steps {
  std::int64_t low = 0;
  std::int64_t high = 0;
  int axis = -1;  ///< of the channels, of which each has a scale
  double gradient_factor = 1;
  /// The greatest number that may be reached: on a GPU a learned scale is kept to that in passing.
  double most = std::numeric_limits<double>::infinity();
};
Steps steps_of(const QuantSpec& spec);

/// Rounds `x` to multiples of `scale` within the steps, halves to even, exactly as the written
/// model does. `scale` and `zero_point` (whole numbers, as floats) have one element, or one for
/// each channel. Gradients pass where nothing saturates; `scale` gets the one of LSQ where it wants
/// one, and so does `offset`, the float that the lower end of the range stands for (LSQ+), where
/// it is given.
at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                         const Steps& steps, const at::Tensor& offset = {});

/// The tensors of parameters: scales, and zero points as floats.
at::Tensor scale_tensor(const QuantParams& params);
at::Tensor zero_point_tensor(const QuantParams& params);
/// Parameters from such tensors.
QuantParams to_params(const QuantSpec& spec, const at::Tensor& scale, const at::Tensor& zero_point);

}  // namespace quench::qat
