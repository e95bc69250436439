// SPDX-License-Identifier: Apache-2.0
// LiteRT (TensorFlow Lite): signed activations with zero points, signed weights in a narrow range,
// int32 biases. Its kernels make Softmax, Sigmoid and Tanh at fixed scales, and pools and moves at
// the scale of what they read; where a plan has another, the writer adds a QUANTIZE.
#include "plan/target.h"

namespace quench::plan {

TargetInfo tflite() {
  TargetInfo target{.name = "tflite",
                    .summary = "LiteRT and TensorFlow Lite: int8, weights in -127..127",
                    .activation_signed = true,
                    .activation_symmetric = false,
                    .narrow_weights = true,
                    .shared_concat = true};
  target.ops = {
      integer(Form::Convolution),
      integer(Form::TransposedConvolution),
      integer(Form::Product),
      integer("Add"),
      integer("Sub"),
      integer("Mul"),
      integer(Form::Average),
      integer("ReduceMean"),
      integer("Concat"),
      integer("Softmax"),
      integer("Sigmoid"),
      integer("Tanh"),
      integer("HardSwish"),
      integer("LeakyRelu"),
      moves(Form::View),
      moves("Slice"),
      moves("Split"),
      moves("Gather"),
      moves("MaxPool"),
      moves("Resize"),
      in_float(Form::Clamp, "fused with the layer before it"),
  };
  target.otherwise = "no integer kernel";
  return target;
}

}  // namespace quench::plan
