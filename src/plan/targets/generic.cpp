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
                    .quantize_outputs = false};
  target.ops = {
      integer_to_float("Conv"),
      integer_to_float("ConvTranspose"),
      integer_to_float("Gemm"),
      integer_to_float("MatMul"),
      integer_to_float("Add"),
      integer_to_float("Concat"),
      moves("Reshape"),
      moves("Transpose"),
      moves("Squeeze"),
      moves("Unsqueeze"),
      moves("Flatten"),
      moves("MaxPool"),
      in_float("Relu", "fused with the layer before it where the runtime can"),
      in_float("Clip", "fused with the layer before it where the runtime can"),
  };
  target.otherwise = "runtimes differ: left in float";
  return target;
}

}  // namespace quench::plan
