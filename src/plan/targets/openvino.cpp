// SPDX-License-Identifier: Apache-2.0
// Intel OpenVINO on CPU: unsigned activations, signed weights in a narrow range, float biases.
#include "plan/target.h"

namespace quench::plan {

TargetInfo openvino() {
  TargetInfo target{.name = "openvino",
                    .summary = "OpenVINO on CPU: uint8 activations, int8 weights in -127..127",
                    .quantize_bias = false,
                    .quantize_outputs = false,
                    .narrow_weights = true,
                    .shared_concat = true};
  target.ops = {
      integer_to_float(Form::Convolution),
      integer_to_float(Form::TransposedConvolution),
      integer_to_float(Form::Product),
      integer_to_float("Add"),
      integer_to_float("Sub"),
      integer_to_float("Mul"),
      integer_to_float(Form::Average),
      integer_to_float("ReduceMean"),
      integer_to_float("Concat"),
      moves(Form::View),
      moves("Slice"),
      moves("Split"),
      moves("MaxPool"),
      moves("ReduceMax"),
      moves("Tile"),
      moves("DepthToSpace"),
      moves("Resize"),
      in_float("Softmax", "the product with an attention output is kept in float"),
      in_float(Form::Clamp, "fused with the layer before it"),
      in_float("Sigmoid", "runs in float"),
  };
  target.otherwise = "OpenVINO runs it in float";
  return target;
}

}  // namespace quench::plan
