// SPDX-License-Identifier: Apache-2.0
// Paddle Inference on CPU (oneDNN): symmetric int8, float biases. It finds the scales of layers at
// their inputs, and those of what lies between at the inputs of that. An integer convolution whose
// result has no scale makes floats, wrongly where a hard_swish is fused with it (2.6.2 and 3.3.1).
#include "plan/target.h"

namespace quench::plan {

TargetInfo paddle() {
  TargetInfo target{.name = "paddle",
                    .summary = "Paddle Inference on CPU: symmetric int8, float biases",
                    .activation_signed = true,
                    .activation_symmetric = true,
                    .quantize_bias = false,
                    .quantize_outputs = false,
                    .scaled_activation = "HardSwish",
                    .narrow_weights = true,
                    .square_per_tensor = true,
                    .shared_concat = true};
  target.ops = {
      integer_to_float(Form::Convolution),
      integer_to_float(Form::Product),
      integer_to_float("Add"),
      // Numbers far from their mean would be cut off: PP-OCRv4's text detection found nothing.
      integer_unasked(Form::Average, "Paddle takes the scale of its result for what it reads"),
      integer_to_float("Concat"),
      moves(Form::View),
      moves("Slice"),
      moves("Split"),
      moves("MaxPool"),
      in_float(Form::TransposedConvolution, "Paddle's integer kernel for it crashes"),
      in_float("Mul", "Paddle 3.3 mistakes the type of what it reads"),
      in_float(Form::Clamp, "fused with the layer before it"),
      in_float("Sigmoid", "runs in float"),
      in_float("Softmax", "runs in float"),
  };
  target.otherwise = "Paddle Inference runs it in float";
  return target;
}

}  // namespace quench::plan
