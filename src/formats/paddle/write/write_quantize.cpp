// SPDX-License-Identifier: Apache-2.0
// Rounding to integers and back. Paddle stores the largest value that a scale reaches, not the
// scale, and knows no zero points.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

constexpr float kMost = 127;

/// The scales as Paddle has them, and their axis; -1: one for the whole tensor.
struct Scales {
  Tensor reach;
  std::int32_t axis = -1;
};

Scales scales_of(const NodeWriter& node) {
  const Tensor* scale = node.constant(1);
  if (scale == nullptr) node.refuse("its scale is computed while it runs");
  if (node.node.get_int("block_size", 0) != 0) {
    node.refuse("Paddle has no scales of groups; quantise per channel");
  }
  if (node.has(2)) {
    const Tensor* zero = node.constant(2);
    if (zero == nullptr || zero->dtype() != DType::Int8) {
      node.refuse("Paddle has signed 8-bit integers only; quantise with --target paddle");
    }
    if (std::ranges::any_of(to_float(*zero), [](float z) { return z != 0; })) {
      node.refuse("Paddle has no zero points; quantise with --target paddle");
    }
  }
  std::vector<float> reach = to_float(*scale);
  for (float& each : reach) each *= kMost;
  const bool whole = reach.size() == 1;
  std::int64_t axis = whole ? -1 : node.node.get_int("axis", 1);
  if (axis < 0 && !whole) axis += node.rank(0);
  return {Tensor::of<float>({static_cast<std::int64_t>(reach.size())}, reach),
          static_cast<std::int32_t>(axis)};
}

void rounding(const NodeWriter& node, const char* type, const std::string& from,
              const std::string& scale, const Scales& scales, const std::string& to) {
  const std::vector<std::int32_t> zeros(static_cast<std::size_t>(scales.reach.size()), 0);
  const std::string zero = node.writer.parameter(
      to + "@zero_point",
      Tensor::of<std::int32_t>(scales.reach.shape(), std::span<const std::int32_t>(zeros)));
  node.op(type)
      .in("X", from)
      .in("Scale", scale)
      .in("ZeroPoint", zero)
      .out("Y", to)
      .set("quant_axis", scales.axis)
      .set("bit_length", 8)
      // Paddle 2 reads the bits, Paddle 3 the ends.
      .set("qmin", -128)
      .set("qmax", 127)
      .set("round_type", 0)
      .set("is_test", true);
}

void quantize_linear(const NodeWriter& node) {
  const Scales scales = scales_of(node);
  if (scales.axis != -1) node.refuse("Paddle quantises activations per tensor");
  const std::string from = node.in();
  const std::string scale = node.writer.derived(node.node.input(1), from + "@scale", scales.reach);
  rounding(node, "quantize_linear", from, scale, scales, node.out());
}

void dequantize_linear(const NodeWriter& node) {
  const Scales scales = scales_of(node);
  const std::string from = node.in();
  const std::string scale = node.writer.derived(node.node.input(1), from + "@scale", scales.reach);
  rounding(node, "dequantize_linear", from, scale, scales, node.out());
}

/// `name` less a suffix that our own lowering gave it.
std::string less(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

}  // namespace

void name_as_paddle(Writer& writer) {
  const Graph& graph = writer.graph();
  const auto rename = [&](ValueId value, const std::string& name) {
    if (!writer.taken(name)) writer.call(value, name);
  };
  for (const Node& node : graph.nodes) {
    if (!node.domain.empty() || node.outputs.empty()) continue;
    const bool leaves = std::ranges::find(graph.outputs, node.outputs[0]) != graph.outputs.end();
    if (leaves) continue;
    if (node.op_type == "QuantizeLinear") {
      rename(node.outputs[0], graph[node.inputs[0]].name + ".quantized");
    } else if (node.op_type == "DequantizeLinear") {
      const Value& integers = graph[node.inputs[0]];
      if (integers.constant) {
        const std::string weight = less(integers.name, "_quantized");
        if (!writer.taken(weight)) writer.call(node.inputs[0], weight);
        rename(node.outputs[0], weight + ".quantized.dequantized");
      } else {
        rename(node.outputs[0],
               less(integers.name, "_QuantizeLinear_Output") + ".quantized.dequantized");
      }
    }
  }
}

std::vector<WriteRow> quantize_rows() {
  return {
      {"QuantizeLinear", quantize_linear},
      {"DequantizeLinear", dequantize_linear},
  };
}

}  // namespace quench::paddle::write
