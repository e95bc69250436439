// SPDX-License-Identifier: Apache-2.0
// No runtime in particular: signed, symmetric, at the inputs of layers, so that any can read it.
#include "plan/target.h"

namespace quench::plan {

TargetInfo generic() {
  TargetInfo target{.name = "generic",
                    .summary = "any runtime: symmetric int8 inputs and weights of layers",
                    .activation_signed = true,
                    .activation_symmetric = true,
                    .quantize_bias = false,
                    .quantize_outputs = false,
                    .transposed_depthwise = true};
  target.ops = {
      integer_to_float(Form::Convolution),
      integer_to_float(Form::TransposedConvolution),
      integer_to_float(Form::Product),
      integer_to_float("Add"),
      integer_to_float("Concat"),
      moves(Form::View),
      moves("MaxPool"),
      in_float(Form::Clamp, "fused with the layer before it where the runtime can"),
  };
  target.otherwise = "runtimes differ: left in float";
  return target;
}

}  // namespace quench::plan
