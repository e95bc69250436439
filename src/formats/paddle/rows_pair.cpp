// SPDX-License-Identifier: Apache-2.0
// Functions of two and more tensors that ONNX has no operator for, and products with vectors.
#include <algorithm>
#include <array>
#include <charconv>
#include <numbers>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

/// The greater or the smaller; of a number and none, the number.
void extreme(Op& op, std::string_view op_type) {
  const ValueId x = op.in("X");
  const ValueId y = op.in("Y");
  ValueId found = op.node(op_type, {x, y});
  if (info(op.dtype("X")).is_float) {
    found = op.node("Where", {op.node("IsNaN", {x}), y, found});
    found = op.node("Where", {op.node("IsNaN", {y}), x, found});
  }
  op.set("Out", found);
}
void read_fmax(Op& op) { extreme(op, "Max"); }
void read_fmin(Op& op) { extreme(op, "Min"); }

/// atan(y / x), half a turn further where x is negative; a quarter where it is zero.
void read_atan2(Op& op) {
  const ValueId y = op.in("X1");
  const ValueId x = op.in("X2");
  const auto number = [&](double value) { return op.scalar(value, op.dtype("X1")); };
  const ValueId zero = number(0);
  const ValueId is_zero = op.node("Equal", {x, zero});
  const ValueId divisor = op.node("Where", {is_zero, number(1), x});
  const ValueId below = op.node("Less", {y, zero});
  const ValueId half_turn =
      op.node("Where", {below, number(-std::numbers::pi), number(std::numbers::pi)});
  const ValueId turned = op.node("Where", {op.node("Less", {x, zero}), half_turn, zero});
  const ValueId angle = op.node("Add", {op.node("Atan", {op.node("Div", {y, divisor})}), turned});
  const ValueId quarter = op.node("Mul", {op.node("Sign", {y}), number(std::numbers::pi / 2)});
  op.set("Out", op.node("Where", {is_zero, quarter, angle}));
}

void bitwise(Op& op, std::string_view of_bool, std::string_view of_integers) {
  const bool logical = op.dtype("X") == DType::Bool;
  op.set("Out", op.node(logical ? of_bool : of_integers, {op.in("X"), op.in("Y")}));
}
void read_bitwise_and(Op& op) { bitwise(op, "And", "BitwiseAnd"); }
void read_bitwise_or(Op& op) { bitwise(op, "Or", "BitwiseOr"); }
void read_bitwise_xor(Op& op) { bitwise(op, "Xor", "BitwiseXor"); }

/// x + weight * (y - x).
void read_lerp(Op& op) {
  const ValueId way = op.node("Sub", {op.in("Y"), op.in("X")});
  op.set("Out", op.node("Add", {op.in("X"), op.node("Mul", {op.in("Weight"), way})}));
}

/// A number that programs give as a text, and PIR as an operand.
double tolerance(Op& op, std::string_view name) {
  const Attr* found = op.item().find(name);
  const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->data);
  if (text == nullptr) return op.number(name);
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    fail(ErrorKind::BadModel, "its {} '{}' is no number", name, *text);
  }
  return value;
}

/// |x - y| <= atol + rtol * |y|, or the same infinity.
ValueId close(Op& op) {
  if (op.flag("equal_nan")) fail(ErrorKind::Unsupported, "it takes what is no number for equal");
  const ValueId x = op.in("Input");
  const ValueId y = op.in("Other");
  const DType dtype = op.dtype("Input");
  const ValueId apart = op.node("Abs", {op.node("Sub", {x, y})});
  const ValueId share =
      op.node("Mul", {op.node("Abs", {y}), op.scalar(tolerance(op, "rtol"), dtype)});
  const ValueId most = op.node("Add", {share, op.scalar(tolerance(op, "atol"), dtype)});
  return op.node("Or", {op.node("LessOrEqual", {apart, most}), op.node("Equal", {x, y})});
}

/// Whether all of a tensor of bool is true.
ValueId all_of(Op& op, ValueId value) {
  return op.cast(op.reduce("ReduceMin", op.cast(value, DType::Int32), {}, false), DType::Bool);
}

void read_is_close(Op& op) { op.set("Out", close(op)); }
void read_all_close(Op& op) { op.set("Out", all_of(op, close(op))); }
void read_equal_all(Op& op) {
  op.set("Out", all_of(op, op.node("Equal", {op.in("X"), op.in("Y")})));
}

/// 0 below zero, 1 above it, and what Y says at zero.
void read_heaviside(Op& op) {
  const ValueId zero = op.scalar(0, op.dtype("X"));
  const ValueId above = op.cast(op.node("Greater", {op.in("X"), zero}), op.dtype("X"));
  op.set("Out", op.node("Where", {op.node("Equal", {op.in("X"), zero}), op.in("Y"), above}));
}

/// beta * input + alpha * x y.
void read_addmm(Op& op) {
  const DType dtype = op.dtype("X");
  const auto scaled = [&](ValueId value, double by) {
    return by == 1 ? value : op.node("Mul", {value, op.scalar(by, dtype)});
  };
  const ValueId product = op.node("MatMul", {op.in("X"), op.in("Y")});
  op.set("Out", op.node("Add", {scaled(op.in("Input"), op.real("Beta")),
                                scaled(product, op.real("Alpha"))}));
}

void read_mv(Op& op) { op.set("Out", op.node("MatMul", {op.in("X"), op.in("Vec")})); }

/// Older programs keep the dimension that the sum is over.
void read_dot(Op& op) {
  const bool keep = op.rank("Out") == op.rank("X");
  op.set("Out", op.reduce("ReduceSum", op.node("Mul", {op.in("X"), op.in("Y")}), {-1}, keep));
}

/// Every product of an element of each: sizes multiply.
void read_kron(Op& op) {
  const std::int64_t rank_x = op.need_rank("X");
  const std::int64_t rank_y = op.need_rank("Y");
  const std::int64_t rank = std::max(rank_x, rank_y);
  const auto in_front = [&](ValueId value, std::int64_t has) {
    std::vector<std::int64_t> axes;
    for (std::int64_t i = has; i < rank; ++i) axes.push_back(i - has);
    return axes.empty() ? value : op.unsqueeze(value, axes);
  };
  const ValueId x = in_front(op.in("X"), rank_x);
  const ValueId y = in_front(op.in("Y"), rank_y);
  std::vector<std::int64_t> even, odd;
  for (std::int64_t i = 0; i < rank; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  const ValueId all = op.node("Mul", {op.unsqueeze(x, odd), op.unsqueeze(y, even)});
  op.set("Out", op.node("Reshape", {all, op.node("Mul", {op.sizes(x), op.sizes(y)})}));
}

/// The axis of three that is given, or the first.
std::int64_t axis_of_three(Op& op) {
  constexpr std::int64_t kNone = 9;
  const std::int64_t given = op.integer("dim");
  if (given != kNone) return given;
  const Shape shape = op.shape("X").value_or(Shape());
  const auto three = std::ranges::find(shape, 3);
  if (three == shape.end()) fail(ErrorKind::BadModel, "no dimension of its input has size 3");
  return three - shape.begin();
}

void read_cross(Op& op) {
  const std::int64_t axis = axis_of_three(op);
  const auto turned = [&](std::string_view input, std::vector<std::int64_t> order) {
    return op.node("Gather", {op.in(input), op.ints(std::move(order))}, {{"axis", axis}});
  };
  const ValueId right = op.node("Mul", {turned("X", {1, 2, 0}), turned("Y", {2, 0, 1})});
  const ValueId left = op.node("Mul", {turned("X", {2, 0, 1}), turned("Y", {1, 2, 0})});
  op.set("Out", op.node("Sub", {right, left}));
}

/// Of each row the tensor that its number names.
void read_multiplex(Op& op) {
  const std::vector<ValueId> inputs = op.ins("X");
  if (inputs.empty()) fail(ErrorKind::BadModel, "it has no tensors to choose from");
  const ValueId all = op.node("Concat",
                              [&] {
                                std::vector<ValueId> parts;
                                for (const ValueId each : inputs)
                                  parts.push_back(op.unsqueeze(each, {1}));
                                return parts;
                              }(),
                              {{"axis", std::int64_t{1}}});
  const ValueId place = op.cast(op.reshape(op.in("Ids"), {-1, 1}), DType::Int64);
  op.set("Out", op.node("GatherND", {all, place}, {{"batch_dims", std::int64_t{1}}}));
}

constexpr std::string_view kTwo = "X Y";

constexpr auto kRows = std::to_array<OpRow>({
    {"elementwise_fmax", "fmax", kTwo, "Out", "axis=-1", read_fmax},
    {"elementwise_fmin", "fmin", kTwo, "Out", "axis=-1", read_fmin},
    {"elementwise_heaviside", "heaviside", kTwo, "Out", "axis=-1", read_heaviside},
    {"atan2", "", "X1 X2", "Out", "", read_atan2},
    {"bitwise_and", "", kTwo, "Out", "", read_bitwise_and, 18},
    {"bitwise_or", "", kTwo, "Out", "", read_bitwise_or, 18},
    {"bitwise_xor", "", kTwo, "Out", "", read_bitwise_xor, 18},
    {"lerp", "", "X Y Weight", "Out", "", read_lerp},
    {"isclose", "", "Input Other rtol:Rtol atol:Atol", "Out", "rtol=1e-5 atol=1e-8 equal_nan=false",
     read_is_close},
    {"allclose", "", "Input Other rtol:Rtol atol:Atol", "Out",
     "rtol=1e-5 atol=1e-8 equal_nan=false", read_all_close},
    {"equal_all", "", kTwo, "Out", "", read_equal_all},
    {"addmm", "", "Input X Y", "Out", "Beta|beta=1 Alpha|alpha=1", read_addmm},
    {"mv", "", "X Vec", "Out", "", read_mv},
    {"dot", "", kTwo, "Out", "", read_dot},
    {"kron", "", kTwo, "Out", "", read_kron},
    {"cross", "", kTwo, "Out", "dim|axis=9", read_cross},
    {"multiplex", "", "X Ids", "Out", "", read_multiplex},
});

}  // namespace

std::span<const OpRow> pair_rows() { return kRows; }

}  // namespace quench::paddle
