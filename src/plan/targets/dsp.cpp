// SPDX-License-Identifier: Apache-2.0
// Fixed-point signal processors (Hexagon and their like): everything between two layers is uint8.
#include "plan/target.h"

namespace quench::plan {

TargetInfo dsp() {
  TargetInfo target{.name = "dsp",
                    .summary =
                        "fixed-point signal processors: uint8 activations, int8 weights per "
                        "layer, every value between layers quantised",
                    .per_channel = false};
  target.ops = {
      integer(Form::Convolution),
      integer(Form::TransposedConvolution),
      integer(Form::Product),
      integer("Add"),
      integer("Sub"),
      integer("Mul"),
      integer("Div"),
      integer("Concat"),
      integer(Form::Average),
      integer(Form::LookupTable),
      integer("PRelu"),
      integer_within("Softmax", {.min = 0, .max = 1}),
      integer("ReduceMean"),
      moves(Form::View),
      moves("Slice"),
      moves("Gather"),
      moves("Expand"),
      moves("Tile"),
      moves("Split"),
      moves("MaxPool"),
      moves("DepthToSpace"),
      moves("SpaceToDepth"),
      moves("Resize"),
      in_float(Form::Clamp, "fused with the layer before it"),
  };
  target.otherwise = "signal processors have no fixed-point kernel for it";
  return target;
}

}  // namespace quench::plan
