// SPDX-License-Identifier: Apache-2.0
// Paddle's arithmetic of two tensors and its matrix products.
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

/// Y (or X, where it has fewer dimensions) so that plain broadcasting aligns its first dimension
/// with dimension `axis` of the other: ones are added behind. A constant that nothing else reads
/// gets the shape itself and keeps its name.
ValueId aligned(Op& op, std::string_view shorter, std::int64_t longer_rank, std::int64_t axis) {
  const ValueId value = op.in(shorter);
  const auto dims = op.shape(shorter);
  const std::int64_t behind = longer_rank - axis - std::ssize(*dims);
  if (behind <= 0 || dims->empty()) return value;
  Shape shape = *dims;
  shape.insert(shape.end(), static_cast<std::size_t>(behind), 1);
  Graph& graph = op.translator().graph();
  if (const Tensor* tensor = op.constant_of(value)) {
    if (op.translator().num_readers(graph[value].name) > 1) {
      return op.constant(tensor->reshaped(shape));
    }
    graph[value].constant = tensor->reshaped(shape);
    graph[value].type = ValueType::of(*graph[value].constant);
    return value;
  }
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < behind; ++i) axes.push_back(std::ssize(*dims) + i);
  return op.unsqueeze(value, axes);
}

std::vector<ValueId> aligned_operands(Op& op) {
  const auto x = op.rank("X");
  const auto y = op.rank("Y");
  const std::int64_t axis = op.integer("axis");
  if (axis < 0 || !x || !y || *x == *y) return {op.in("X"), op.in("Y")};
  if (*x > *y) return {op.in("X"), aligned(op, "Y", *x, axis)};
  return {aligned(op, "X", *y, axis), op.in("Y")};
}

/// Paddle computes in the element type of X, whatever that of Y.
std::vector<ValueId> operands(Op& op) {
  std::vector<ValueId> xy = aligned_operands(op);
  if (op.dtype("X") != op.dtype("Y")) xy[1] = op.cast(xy[1], op.dtype("X"));
  return xy;
}

template <const char* kOpType>
void read_binary(Op& op) {
  op.set("Out", op.node(kOpType, operands(op)));
}

void read_not_equal(Op& op) { op.set("Out", op.node("Not", {op.node("Equal", operands(op))})); }

/// The result has the sign of the divisor, for floats too: x - floor(x / y) * y.
void read_mod(Op& op) {
  const std::vector<ValueId> xy = operands(op);
  if (!info(op.dtype("X")).is_float) {
    op.set("Out", op.node("Mod", xy));
    return;
  }
  const ValueId whole = op.node("Floor", {op.node("Div", xy)});
  op.set("Out", op.node("Sub", {xy[0], op.node("Mul", {whole, xy[1]})}));
}

/// Integers are rounded down, which ONNX's division of negative ones does not do.
void read_floor_div(Op& op) {
  const std::vector<ValueId> xy = operands(op);
  if (info(op.dtype("X")).is_float) {
    op.set("Out", op.node("Floor", {op.node("Div", xy)}));
    return;
  }
  const ValueId rest = op.node("Mod", xy);
  op.set("Out", op.node("Div", {op.node("Sub", {xy[0], rest}), xy[1]}));
}

void read_scale(Op& op) {
  const ValueId given = op.tensor_of("scale");
  const bool computed = given != kNoValue && op.constant_of(given) == nullptr;
  const double scale = computed ? 0 : op.number("scale");
  const double bias = op.number("bias");
  if (scale == 1 && bias == 0) {  // what exporters put before an output
    op.set("Out", op.node("Identity", {op.in("X")}));
    return;
  }
  const DType dtype = op.dtype("X");
  const bool whole = !info(dtype).is_float;
  const DType inner = whole ? DType::Float32 : dtype;
  ValueId x = whole ? op.cast(op.in("X"), inner) : op.in("X");
  const auto multiply = [&](ValueId value) {
    if (computed) return op.node("Mul", {value, op.cast(given, inner)});
    return scale == 1 ? value : op.node("Mul", {value, op.scalar(scale, inner)});
  };
  const auto add = [&](ValueId value) {
    return bias == 0 ? value : op.node("Add", {value, op.scalar(bias, inner)});
  };
  x = op.flag("bias_after_scale") ? add(multiply(x)) : multiply(add(x));
  op.set("Out", whole ? op.cast(x, dtype) : x);
}

void read_pow(Op& op) {
  const ValueId factor = op.tensor_of("factor");
  const DType dtype = op.dtype("X");
  const ValueId exponent = factor == kNoValue ? op.scalar(op.real("factor"), dtype)
                                              : op.cast(op.reshape(factor, {}), dtype);
  op.set("Out", op.node("Pow", {op.in("X"), exponent}));
}

/// The operand with its last two dimensions swapped, if asked for. A vector stays as it is.
ValueId turned(Op& op, std::string_view input, bool turn) {
  if (!turn) return op.in(input);
  const std::int64_t rank = op.need_rank(input);
  if (rank < 2) return op.in(input);
  std::vector<std::int64_t> perm;
  for (std::int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return op.transpose(op.in(input), perm);
}

void read_matmul_v2(Op& op) {
  const ValueId x = turned(op, "X", op.flag("trans_x"));
  op.set("Out", op.node("MatMul", {x, turned(op, "Y", op.flag("trans_y"))}));
}

void read_matmul(Op& op) {
  const ValueId x = turned(op, "X", op.flag("transpose_X"));
  const ValueId product = op.node("MatMul", {x, turned(op, "Y", op.flag("transpose_Y"))});
  const double alpha = op.real("alpha");
  op.set("Out", alpha == 1 ? product : op.node("Mul", {product, op.scalar(alpha, op.dtype("X"))}));
}

void read_bmm(Op& op) { op.set("Out", op.node("MatMul", {op.in("X"), op.in("Y")})); }

/// The first x_num_col_dims dimensions of X are rows, the others columns; of Y likewise.
void read_mul(Op& op) {
  const std::int64_t x_rows = op.integer("x_num_col_dims");
  const std::int64_t y_rows = op.integer("y_num_col_dims");
  const std::int64_t x_rank = op.need_rank("X");
  const std::int64_t y_rank = op.need_rank("Y");
  if (y_rank == 2 && y_rows == 1 && x_rows == x_rank - 1) {
    op.set("Out", op.node("MatMul", {op.in("X"), op.in("Y")}));
    return;
  }
  const ValueId x = op.node("Flatten", {op.in("X")}, {{"axis", x_rows}});
  const ValueId y = op.node("Flatten", {op.in("Y")}, {{"axis", y_rows}});
  const ValueId product = op.node("MatMul", {x, y});
  if (x_rows == 1 && y_rank - y_rows == 1) {
    op.set("Out", product);
    return;
  }
  const ValueId rows = op.slice(op.sizes(op.in("X")), 0, 0, x_rows);
  const ValueId columns = op.slice(op.sizes(op.in("Y")), 0, y_rows, kEnd);
  const ValueId shape = op.node("Concat", {rows, columns}, {{"axis", std::int64_t{0}}});
  op.set("Out", op.node("Reshape", {product, shape}));
}

void read_sum(Op& op) { op.set("Out", op.node("Sum", op.ins("X"))); }

void read_einsum(Op& op) {
  op.set("Out", op.node("Einsum", op.ins("Operands"), {{"equation", op.text("equation")}}));
}

constexpr char kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul", kDiv[] = "Div", kMax[] = "Max",
               kMin[] = "Min", kPow[] = "Pow", kEqual[] = "Equal", kGreater[] = "Greater",
               kLess[] = "Less", kGreaterOrEqual[] = "GreaterOrEqual",
               kLessOrEqual[] = "LessOrEqual", kAnd[] = "And", kOr[] = "Or", kXor[] = "Xor";

constexpr std::string_view kTwo = "X Y";
constexpr std::string_view kAxis = "axis=-1";

constexpr auto kRows = std::to_array<OpRow>({
    {"elementwise_add", "add", kTwo, "Out", kAxis, read_binary<kAdd>},
    {"elementwise_sub", "subtract", kTwo, "Out", kAxis, read_binary<kSub>},
    {"elementwise_mul", "multiply", kTwo, "Out", kAxis, read_binary<kMul>},
    {"elementwise_div", "divide", kTwo, "Out", kAxis, read_binary<kDiv>},
    {"elementwise_max", "maximum", kTwo, "Out", kAxis, read_binary<kMax>},
    {"elementwise_min", "minimum", kTwo, "Out", kAxis, read_binary<kMin>},
    {"elementwise_pow", "", kTwo, "Out", kAxis, read_binary<kPow>},
    {"elementwise_mod", "remainder", kTwo, "Out", kAxis, read_mod},
    {"elementwise_floordiv", "floor_divide", kTwo, "Out", kAxis, read_floor_div},
    {"equal", "", kTwo, "Out", kAxis, read_binary<kEqual>},
    {"not_equal", "", kTwo, "Out", kAxis, read_not_equal},
    {"greater_than", "", kTwo, "Out", kAxis, read_binary<kGreater>},
    {"greater_equal", "", kTwo, "Out", kAxis, read_binary<kGreaterOrEqual>},
    {"less_than", "", kTwo, "Out", kAxis, read_binary<kLess>},
    {"less_equal", "", kTwo, "Out", kAxis, read_binary<kLessOrEqual>},
    {"logical_and", "", kTwo, "Out", kAxis, read_binary<kAnd>},
    {"logical_or", "", kTwo, "Out", kAxis, read_binary<kOr>},
    {"logical_xor", "", kTwo, "Out", kAxis, read_binary<kXor>},
    {"scale", "", "X scale:ScaleTensor", "Out", "scale=1 bias=0 bias_after_scale=true", read_scale},
    {"pow", "", "X / factor:FactorTensor", "Out", "factor|y=1", read_pow},
    {"matmul_v2", "matmul", kTwo, "Out", "trans_x|transpose_x=false trans_y|transpose_y=false",
     read_matmul_v2},
    {"matmul", "-", kTwo, "Out", "transpose_X=false transpose_Y=false alpha=1", read_matmul},
    {"bmm", "", kTwo, "Out", "", read_bmm},
    {"mul", "matmul_with_flatten", kTwo, "Out", "x_num_col_dims=1 y_num_col_dims=1", read_mul},
    {"sum", "add_n", "X", "Out", "", read_sum},
    {"einsum", "", "Operands", "Out", "equation", read_einsum},
});

}  // namespace

std::span<const OpRow> arithmetic_rows() { return kRows; }

}  // namespace quench::paddle
