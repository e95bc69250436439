// SPDX-License-Identifier: Apache-2.0
// LiteRT (TensorFlow Lite): signed activations with zero points, signed weights in a narrow range,
// int32 biases. Its kernels make Softmax, Sigmoid and Tanh at fixed scales, and pools and moves at
// the scale of what they read; where a plan has another, the writer adds a QUANTIZE. Accelerators
// take a model whole or leave it at the first float operator, so that integers go to the end.
#include <cmath>

#include "plan/facts.h"
#include "plan/target.h"

namespace quench::plan {
namespace {

/// RELU and RELU6 are the clamps that it has as operators of their own on integers.
bool has_clamp(const Graph& graph, const Node& node) {
  constexpr std::int64_t kLimitsAreAttributes = 6;
  constexpr std::int64_t kLimitsAreInputs = 13;
  const bool old = node.find("min") != nullptr || node.find("max") != nullptr;
  const auto bounds = activation_bounds(graph, node, old ? kLimitsAreAttributes : kLimitsAreInputs);
  return bounds && bounds->min == 0 && (bounds->max == 6 || std::isinf(bounds->max));
}

/// Numbers that come in must be zeros: they are the zero point, whatever the scale.
bool pads_zeros(const Graph& graph, const Node& node) {
  const std::string mode = node.get_string("mode", "constant");
  const Tensor* value = graph.constant(node.input(2));
  const bool zeros = node.input(2) == kNoValue ||
                     (value != nullptr && value->size() == 1 && to_float(*value)[0] == 0);
  return graph.constant(node.input(1)) != nullptr && node.input(3) == kNoValue &&
         (mode == "reflect" || (mode == "constant" && zeros));
}

std::string refuse(const Graph& graph, const Node& node) {
  if (ops::facts(node).integer == Form::Clamp && !has_clamp(graph, node)) {
    return "it is fused with the layer before it, or no integer kernel has its limits";
  }
  if (node.op_type == "Pad" && !pads_zeros(graph, node)) return "it pads with more than zeros";
  return "";
}

}  // namespace

TargetInfo tflite() {
  TargetInfo target{.name = "tflite",
                    .summary = "LiteRT and TensorFlow Lite: int8, weights in -127..127",
                    .activation_signed = true,
                    .activation_symmetric = false,
                    .narrow_weights = true,
                    .shared_concat = true,
                    .integer_ends = true,
                    .interpolates = true};
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
      integer_within("Softmax", {.min = 0, .max = 1}),
      integer_within("Sigmoid", {.min = 0, .max = 1}),
      integer_within("HardSigmoid", {.min = 0, .max = 1}),
      integer_within("Tanh", {.min = -1, .max = 1}),
      integer("HardSwish"),
      integer("LeakyRelu"),
      integer(Form::Clamp),
      moves(Form::View),
      moves("Slice"),
      moves("Split"),
      moves("Gather"),
      moves("MaxPool"),
      moves("Resize"),
      moves("Pad"),
  };
  target.otherwise = "no integer kernel";
  target.refuse = refuse;
  return target;
}

}  // namespace quench::plan
