// SPDX-License-Identifier: Apache-2.0
// Activations and functions of one value.
#include "formats/paddle/write/writer.h"
#include "ir/noted_scale.h"

namespace quench::paddle::write {
namespace {

/// Operators that differ in nothing but their names.
#define QUENCH_PLAIN(onnx, paddle)                           \
  {                                                          \
    onnx, [](const NodeWriter& node) { node.unary(paddle); } \
  }

void clip(const NodeWriter& node) {
  const bool old = node.opset < 11;
  constexpr float kMost = 3.4028234663852886e38F;
  const auto end = [&](const char* attribute, std::size_t input, float otherwise) {
    if (old) return node.node.get_float(attribute, otherwise);
    return node.has(input) ? node.number(input) : otherwise;
  };
  const float low = end("min", 1, -kMost);
  const float high = end("max", 2, kMost);
  if (low == 0 && high == 6) {
    node.unary("relu6").set("threshold", high);
  } else {
    node.unary("clip").set("min", low).set("max", high);
  }
}

/// What only notes a scale is an attribute of the operator before it, which PIR does not have.
void identity(const NodeWriter& node) {
  const float scale = node.node.get_float(kNotedScale, 0.0F);
  if (scale == 0) {
    node.unary("assign");
    return;
  }
  constexpr float kMost = 127;
  const std::string same = node.in();
  if (node.writer.inner() == Inner::Blocks) node.writer.note_reach(same, scale * kMost);
  node.writer.alias(node.node.outputs[0], same);
}

void softmax(const NodeWriter& node, const char* type) {
  const bool flattens = node.opset < 13;  // then all axes from this one on are one
  const std::int64_t axis = node.node.get_int("axis", flattens ? 1 : -1);
  if (flattens && axis != -1 && axis != node.rank(0) - 1) node.refuse("its axis is not the last");
  node.unary(type).set("axis", static_cast<std::int32_t>(axis));
}

void prelu(const NodeWriter& node) {
  const Tensor* slope = node.constant(1);
  if (slope == nullptr) node.refuse("its slope is computed while it runs");
  const bool one = slope->size() == 1;
  const std::int64_t channel_axis = slope->rank() - node.rank(0) + 1;
  if (!one && (channel_axis < 0 ||
               slope->shape()[static_cast<std::size_t>(channel_axis)] != slope->size())) {
    node.refuse("its slope is neither one number nor one a channel");
  }
  const std::string alpha = node.writer.parameter(node.graph()[node.node.input(1)].name,
                                                  slope->reshaped({slope->size()}));
  node.op("prelu")
      .in("X", node.in())
      .in("Alpha", alpha)
      .out("Out", node.out())
      .set("mode", one ? "all" : "channel")
      .set("data_format", "NCHW");
}

void gelu(const NodeWriter& node) {
  node.unary("gelu").set("approximate", node.node.get_string("approximate", "none") == "tanh");
}

void dropout(const NodeWriter& node) { node.unary("assign"); }

}  // namespace

std::vector<WriteRow> activation_rows() {
  return {
      QUENCH_PLAIN("Relu", "relu"),
      QUENCH_PLAIN("Sigmoid", "sigmoid"),
      QUENCH_PLAIN("Tanh", "tanh"),
      QUENCH_PLAIN("Exp", "exp"),
      QUENCH_PLAIN("Log", "log"),
      QUENCH_PLAIN("Sqrt", "sqrt"),
      QUENCH_PLAIN("Abs", "abs"),
      QUENCH_PLAIN("Floor", "floor"),
      QUENCH_PLAIN("Ceil", "ceil"),
      QUENCH_PLAIN("Erf", "erf"),
      QUENCH_PLAIN("Sin", "sin"),
      QUENCH_PLAIN("Cos", "cos"),
      QUENCH_PLAIN("Sign", "sign"),
      QUENCH_PLAIN("Reciprocal", "reciprocal"),
      QUENCH_PLAIN("Softsign", "softsign"),
      {"Identity", identity},
      QUENCH_PLAIN("Not", "logical_not"),
      QUENCH_PLAIN("IsNaN", "isnan_v2"),
      {"Mish", [](const NodeWriter& node) { node.unary("mish").set("threshold", 20.0F); }},
      {"Softplus",
       [](const NodeWriter& node) {
         node.unary("softplus").set("beta", 1.0F).set("threshold", 20.0F);
       }},
      {"Neg",
       [](const NodeWriter& node) {
         node.unary("scale").set("scale", -1.0F).set("bias", 0.0F).set("bias_after_scale", true);
       }},
      {"Elu",
       [](const NodeWriter& node) {
         node.unary("elu").set("alpha", node.node.get_float("alpha", 1.0F));
       }},
      {"LeakyRelu",
       [](const NodeWriter& node) {
         node.unary("leaky_relu").set("alpha", node.node.get_float("alpha", 0.01F));
       }},
      {"HardSigmoid",
       [](const NodeWriter& node) {
         node.unary("hard_sigmoid")
             .set("slope", node.node.get_float("alpha", 0.2F))
             .set("offset", node.node.get_float("beta", 0.5F));
       }},
      {"HardSwish",
       [](const NodeWriter& node) {
         node.unary("hard_swish").set("threshold", 6.0F).set("scale", 6.0F).set("offset", 3.0F);
       }},
      {"Softmax", [](const NodeWriter& node) { softmax(node, "softmax"); }},
      {"LogSoftmax", [](const NodeWriter& node) { softmax(node, "log_softmax"); }},
      {"Clip", clip},
      {"PRelu", prelu},
      {"Gelu", gelu},
      {"Dropout", dropout},
  };
}

}  // namespace quench::paddle::write
