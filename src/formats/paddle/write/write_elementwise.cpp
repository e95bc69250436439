// SPDX-License-Identifier: Apache-2.0
// Functions of two values and more, element by element.
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

void binary(const NodeWriter& node, const char* type) {
  node.op(type).in("X", node.in(0)).in("Y", node.in(1)).out("Out", node.out()).set("axis", -1);
}

/// One operator after the other, for those that take any number of values.
void chain(const NodeWriter& node, const char* type) {
  const std::size_t count = node.node.inputs.size();
  if (count == 1) {
    node.unary("assign");
    return;
  }
  std::string so_far = node.in(0);
  for (std::size_t i = 1; i < count; ++i) {
    const std::string result = i + 1 == count ? node.out() : node.between(std::to_string(i));
    node.op(type).in("X", so_far).in("Y", node.in(i)).out("Out", result).set("axis", -1);
    so_far = result;
  }
}

void where(const NodeWriter& node) {
  node.op("where")
      .in("Condition", node.in(0))
      .in("X", node.in(1))
      .in("Y", node.in(2))
      .out("Out", node.out());
}

#define QUENCH_BINARY(onnx, paddle)                            \
  {                                                            \
    onnx, [](const NodeWriter& node) { binary(node, paddle); } \
  }

}  // namespace

std::vector<WriteRow> elementwise_rows() {
  return {
      QUENCH_BINARY("Add", "elementwise_add"),
      QUENCH_BINARY("Sub", "elementwise_sub"),
      QUENCH_BINARY("Mul", "elementwise_mul"),
      QUENCH_BINARY("Div", "elementwise_div"),
      QUENCH_BINARY("Pow", "elementwise_pow"),
      QUENCH_BINARY("Equal", "equal"),
      QUENCH_BINARY("Greater", "greater_than"),
      QUENCH_BINARY("Less", "less_than"),
      QUENCH_BINARY("GreaterOrEqual", "greater_equal"),
      QUENCH_BINARY("LessOrEqual", "less_equal"),
      QUENCH_BINARY("And", "logical_and"),
      QUENCH_BINARY("Or", "logical_or"),
      QUENCH_BINARY("Xor", "logical_xor"),
      {"Max", [](const NodeWriter& node) { chain(node, "elementwise_max"); }},
      {"Min", [](const NodeWriter& node) { chain(node, "elementwise_min"); }},
      // Paddle's own "sum" has no broadcasting.
      {"Sum", [](const NodeWriter& node) { chain(node, "elementwise_add"); }},
      {"Where", where},
  };
}

}  // namespace quench::paddle::write
