// SPDX-License-Identifier: Apache-2.0
// MindIR's functions of one tensor and of two, element by element.
#include <array>

#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"

namespace quench::mindir {
namespace {

void read_same(Op& op) { op.set(op.make().node(op.as(), {op.in(0)})); }

/// MindSpore Lite's and MindSpore's own differ in what is fused.
void read_two(Op& op) {
  const ValueId a = op.in(0);
  // A number beside a tensor takes the tensor's type, as Python's do.
  const bool number = op.entry(1).kind == Entry::Kind::Int;
  const ValueId b = number ? op.make().scalar(static_cast<double>(op.entry(1).number)) : op.in(1);
  op.set(op.activated(op.make().node(op.as(), {a, b})));
}

void read_not_equal(Op& op) {
  op.set(op.make().node("Not", {op.make().node("Equal", {op.in(0), op.in(1)})}));
}

void read_floor_div(Op& op) {
  op.set(op.make().node("Floor", {op.make().node("Div", {op.in(0), op.in(1)})}));
}

void read_floor_mod(Op& op) {
  const ValueId x = op.in(0), y = op.in(1);
  const ValueId whole = op.make().node("Floor", {op.make().node("Div", {x, y})});
  op.set(op.make().node("Sub", {x, op.make().node("Mul", {whole, y})}));
}

void read_squared_difference(Op& op) {
  const ValueId difference = op.make().node("Sub", {op.in(0), op.in(1)});
  op.set(op.make().node("Mul", {difference, difference}));
}

void read_square(Op& op) {
  const ValueId x = op.in(0);
  op.set(op.make().node("Mul", {x, x}));
}

void read_rsqrt(Op& op) {
  op.set(op.make().node("Reciprocal", {op.make().node("Sqrt", {op.in(0)})}));
}

void read_relu6(Op& op) { op.set(op.make().clip(op.in(0), 0, 6)); }

void read_round(Op& op) {
  if (op.number("decimals", 0, 1) != 0) fail(ErrorKind::Unsupported, "it rounds to decimals");
  op.set(op.make().node("Round", {op.in(0)}));
}

void read_log(Op& op) {
  const bool plain =
      op.real("base", -1) == -1 && op.real("scale", 1) == 1 && op.real("shift", 0) == 0;
  if (!plain) fail(ErrorKind::Unsupported, "it has a base, scale or shift of its own");
  op.set(op.make().node(op.as(), {op.in(0)}));
}

/// (scale * x + shift) to a power.
void read_pow_fusion(Op& op) {
  GraphMaker& make = op.make();
  ValueId x = op.in(0);
  if (op.real("scale", 1) != 1) x = make.node("Mul", {x, make.scalar(op.real("scale", 1))});
  if (op.real("shift", 0) != 0) x = make.node("Add", {x, make.scalar(op.real("shift", 0))});
  op.set(make.node("Pow", {x, op.in(1)}));
}

void read_elu(Op& op) {
  op.set(
      op.make().node("Elu", {op.in(0)}, {{"alpha", static_cast<float>(op.real("alpha", 1, 1))}}));
}

void read_leaky(Op& op) {
  const double slope = op.real("negative_slope", 0.01, 1);
  op.set(op.make().node("LeakyRelu", {op.in(0)}, {{"alpha", static_cast<float>(slope)}}));
}

void read_hard_sigmoid(Op& op) {
  op.set(op.make().node("HardSigmoid", {op.in(0)}, {{"alpha", 1.0F / 6}}));
}

void read_silu(Op& op) {
  const ValueId x = op.in(0);
  op.set(op.make().node("Mul", {x, op.make().node("Sigmoid", {x})}));
}

void read_mish(Op& op) {
  const ValueId x = op.in(0);
  op.set(op.make().node("Mul", {x, op.make().node("Tanh", {op.make().node("Softplus", {x})})}));
}

void read_gelu(Op& op) { op.set(gelu(op.make(), op.in(0), true)); }
void read_activation(Op& op) { op.set(op.activated(op.in(0))); }

void read_prelu(Op& op) {
  const auto shape = op.shape(0);
  const Tensor* slope = op.constant(1);
  ValueId by = op.in(1);
  if (slope != nullptr && slope->size() > 1 && shape && shape->size() > 2) {
    Shape whole(shape->size() - 1, 1);
    whole[0] = slope->size();
    by = op.make().constant(slope->reshaped(whole));
  }
  op.set(op.make().node("PRelu", {op.in(0), by}));
}

void read_clamp(Op& op) {
  constexpr double kMost = 3.4e38;
  op.set(op.make().clip(op.in(0), op.real("min", -kMost, 1), op.real("max", kMost, 2)));
}

void read_select(Op& op) { op.set(op.make().node("Where", {op.in(0), op.in(1), op.in(2)})); }

void read_add_n(Op& op) {
  const std::vector<ValueId> parts = op.all_in();
  ValueId sum = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) sum = op.make().node("Add", {sum, parts[i]});
  op.set(sum);
}

void read_cast(Op& op) {
  const DType to = dtype_of_argument(op.number("dst_type", op.number("dtype", 0, 1), 1));
  if (to == DType::Undefined) fail(ErrorKind::Unsupported, "it casts to a type that is not known");
  // Weights that are stored as bytes stay so: a scale follows, which makes floats of them.
  const Tensor* data = op.constant(0);
  const bool bytes = data != nullptr && data->size() > 1 &&
                     (data->dtype() == DType::Int8 || data->dtype() == DType::UInt8);
  const ValueId x = op.in(0);
  op.set(bytes ? op.make().node("Cast", {x}, {{"to", static_cast<std::int64_t>(to)}})
               : op.make().cast(x, to));
}

void read_identity(Op& op) { op.set(op.in(0)); }

void read_softmax(Op& op) {
  const Ints axes = op.ints("axis", 1).value_or(Ints{-1});
  if (axes.size() != 1) fail(ErrorKind::Unsupported, "it works on {} dimensions", axes.size());
  op.set(op.make().node(op.as(), {op.in(0)}, {{"axis", axes[0]}}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"ReLU", read_same, "Relu"},
    {"Sigmoid", read_same, "Sigmoid"},
    {"Tanh", read_same, "Tanh"},
    {"Abs", read_same, "Abs"},
    {"Neg", read_same, "Neg"},
    {"Exp", read_same, "Exp"},
    {"ExpFusion", read_log, "Exp"},
    {"Log", read_log, "Log"},
    {"Sqrt", read_same, "Sqrt"},
    {"Floor", read_same, "Floor"},
    {"Ceil", read_same, "Ceil"},
    {"Sin", read_same, "Sin"},
    {"Cos", read_same, "Cos"},
    {"Erf", read_same, "Erf"},
    {"Sign", read_same, "Sign"},
    {"Reciprocal", read_same, "Reciprocal"},
    {"Softplus", read_same, "Softplus"},
    {"Softsign", read_same, "Softsign"},
    {"LogicalNot", read_same, "Not"},
    {"HSwish", read_same, "HardSwish"},
    {"Round", read_round},
    {"ReLU6", read_relu6},
    {"Square", read_square},
    {"Rsqrt", read_rsqrt},
    {"Elu", read_elu},
    {"LeakyRelu", read_leaky},
    {"LeakyReLUExt", read_leaky},
    {"HSigmoid", read_hard_sigmoid},
    {"SiLU", read_silu},
    {"Mish", read_mish},
    {"GeLU", read_gelu},
    {"PReLU", read_prelu},
    {"PReLUFusion", read_prelu},
    {"ClampScalar", read_clamp},
    {"Clip", read_clamp},
    {"Activation", read_activation},
    {"Softmax", read_softmax, "Softmax"},
    {"LogSoftmax", read_softmax, "LogSoftmax"},
    {"Add", read_two, "Add"},
    {"AddFusion", read_two, "Add"},
    {"Adds", read_two, "Add"},
    {"Sub", read_two, "Sub"},
    {"SubFusion", read_two, "Sub"},
    {"Subs", read_two, "Sub"},
    {"Mul", read_two, "Mul"},
    {"MulFusion", read_two, "Mul"},
    {"Muls", read_two, "Mul"},
    {"Div", read_two, "Div"},
    {"DivFusion", read_two, "Div"},
    {"Divs", read_two, "Div"},
    {"RealDiv", read_two, "Div"},
    {"Pow", read_two, "Pow"},
    {"PowFusion", read_pow_fusion},
    {"Maximum", read_two, "Max"},
    {"Minimum", read_two, "Min"},
    {"Greater", read_two, "Greater"},
    {"GreaterEqual", read_two, "GreaterOrEqual"},
    {"Less", read_two, "Less"},
    {"LessEqual", read_two, "LessOrEqual"},
    {"Equal", read_two, "Equal"},
    {"LogicalAnd", read_two, "And"},
    {"LogicalOr", read_two, "Or"},
    {"NotEqual", read_not_equal},
    {"FloorDiv", read_floor_div},
    {"FloorMod", read_floor_mod},
    {"SquaredDifference", read_squared_difference},
    {"Select", read_select},
    {"AddN", read_add_n},
    {"Cast", read_cast},
    {"Identity", read_identity},
    {"Dropout", read_identity},
    {"StopGradient", read_identity},
});

}  // namespace

std::span<const OpRow> function_rows() { return kRows; }

}  // namespace quench::mindir
