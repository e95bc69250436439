// SPDX-License-Identifier: Apache-2.0
// Huawei Ascend: only convolutions and matrix products, whose inputs are quantised just before
// them.
#include "plan/target.h"

namespace quench::plan {
namespace {

constexpr std::int64_t kMinChannels = 16;

std::string refuse(const Graph& graph, const Node& node) {
  const Tensor* weight = graph.constant(node.input(1));
  if (weight == nullptr) return "its weight is computed";
  const bool convolution = ops::facts(node).weight == ops::WeightKind::Convolution;
  if (convolution && weight->rank() > 0 && weight->shape()[0] < kMinChannels) {
    return "convolutions of fewer than 16 channels do not fill the cube unit";
  }
  return "";
}

}  // namespace

TargetInfo ascend() {
  TargetInfo target{.name = "ascend",
                    .summary = "Huawei Ascend: int8 inputs and weights of layers, float between",
                    .activation_signed = true,
                    .quantize_outputs = false};
  target.ops = {
      integer_to_float(Form::Convolution),
      integer_to_float(Form::Product),
      in_float(Form::Clamp, "fused with the layer before it"),
  };
  target.otherwise = "runs in half precision on the vector unit";
  target.refuse = refuse;
  return target;
}

}  // namespace quench::plan
