// SPDX-License-Identifier: Apache-2.0
// TFLite's functions of several tensors, element by element.
#include <array>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

ValueId combine(Op& op, std::string_view op_type, Layout layout) {
  const std::int64_t rank = op.out_item().rank();
  const ValueId a = op.operand(0, layout, rank);
  const ValueId b = op.operand(1, layout, rank);
  return op.make().node(op_type, {a, b});
}

template <const char* kOpType, bool kFused>
void read_two(Op& op) {
  const Layout layout = op.layout();
  const ValueId y = combine(op, kOpType, layout);
  if constexpr (kFused) return op.set_activated(y, layout);
  op.set(y, layout);
}

constexpr char kAdd[] = "Add";
constexpr char kSub[] = "Sub";
constexpr char kMul[] = "Mul";
constexpr char kDiv[] = "Div";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kPow[] = "Pow";
constexpr char kLess[] = "Less";
constexpr char kLessOrEqual[] = "LessOrEqual";
constexpr char kGreater[] = "Greater";
constexpr char kGreaterOrEqual[] = "GreaterOrEqual";
constexpr char kEqual[] = "Equal";
constexpr char kAnd[] = "And";
constexpr char kOr[] = "Or";

void read_not_equal(Op& op) {
  const Layout layout = op.layout();
  op.set(op.make().node("Not", {combine(op, "Equal", layout)}), layout);
}

void read_squared_difference(Op& op) {
  const Layout layout = op.layout();
  const ValueId difference = combine(op, "Sub", layout);
  op.set(op.make().node("Mul", {difference, difference}), layout);
}

ValueId floor_quotient(Op& op, ValueId a, ValueId b) {
  if (op.in_item(0).dtype != DType::Float32) {
    fail(ErrorKind::Unsupported, "it divides integers, rounding down, which is not read");
  }
  return op.make().node("Floor", {op.make().node("Div", {a, b})});
}

void read_floor_div(Op& op) {
  const Layout layout = op.layout();
  const std::int64_t rank = op.out_item().rank();
  const ValueId a = op.operand(0, layout, rank);
  const ValueId b = op.operand(1, layout, rank);
  op.set(floor_quotient(op, a, b), layout);
}

/// The sign of the divisor, as ONNX's Mod has it for integers.
void read_floor_mod(Op& op) {
  const Layout layout = op.layout();
  const std::int64_t rank = op.out_item().rank();
  const ValueId a = op.operand(0, layout, rank);
  const ValueId b = op.operand(1, layout, rank);
  if (op.in_item(0).dtype != DType::Float32) {
    return op.set(op.make().node("Mod", {a, b}), layout);
  }
  const ValueId whole = op.make().node("Mul", {floor_quotient(op, a, b), b});
  op.set(op.make().node("Sub", {a, whole}), layout);
}

void read_add_n(Op& op) {
  const Layout layout = op.layout();
  const std::int64_t rank = op.out_item().rank();
  ValueId sum = op.operand(0, layout, rank);
  for (std::size_t i = 1; i < op.num_inputs(); ++i) {
    sum = op.make().node("Add", {sum, op.operand(i, layout, rank)});
  }
  op.set(sum, layout);
}

/// A condition of one dimension picks whole rows in SELECT, and broadcasts in SELECT_V2.
void read_select(Op& op) {
  const Layout layout = op.layout();
  const std::int64_t rank = op.out_item().rank();
  ValueId condition = kNoValue;
  if (op.item().name == "SELECT" && op.rank(0) == 1 && rank > 1) {
    Ints shape(static_cast<std::size_t>(rank), 1);
    shape[0] = -1;
    condition = op.make().reshape(op.in(0), shape);
  } else {
    condition = op.operand(0, layout, rank);
  }
  const ValueId yes = op.operand(1, layout, rank);
  op.set(op.make().node("Where", {condition, yes, op.operand(2, layout, rank)}), layout);
}

constexpr auto kRows = std::to_array<OpRow>({
    {"ADD", 11, "fused:b pot:t=1", read_two<kAdd, true>},
    {"SUB", 28, "fused:b pot:t=1", read_two<kSub, true>},
    {"MUL", 21, "fused:b", read_two<kMul, true>},
    {"DIV", 29, "fused:b", read_two<kDiv, true>},
    {"MAXIMUM", 0, "", read_two<kMax, false>},
    {"MINIMUM", 0, "", read_two<kMin, false>},
    {"POW", 0, "", read_two<kPow, false>},
    {"LESS", 0, "", read_two<kLess, false>},
    {"LESS_EQUAL", 0, "", read_two<kLessOrEqual, false>},
    {"GREATER", 0, "", read_two<kGreater, false>},
    {"GREATER_EQUAL", 0, "", read_two<kGreaterOrEqual, false>},
    {"EQUAL", 0, "", read_two<kEqual, false>},
    {"NOT_EQUAL", 0, "", read_not_equal},
    {"LOGICAL_AND", 0, "", read_two<kAnd, false>},
    {"LOGICAL_OR", 0, "", read_two<kOr, false>},
    {"SQUARED_DIFFERENCE", 0, "", read_squared_difference},
    {"FLOOR_DIV", 0, "", read_floor_div},
    {"FLOOR_MOD", 0, "", read_floor_mod},
    {"ADD_N", 0, "", read_add_n},
    {"SELECT", 0, "", read_select},
    {"SELECT_V2", 0, "", read_select},
});

}  // namespace

std::span<const OpRow> arithmetic_rows() { return kRows; }

}  // namespace quench::tflite
