// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor that fewer networks use, put together from ONNX's.
#include <array>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

template <const char* kOpType>
void read_same(Op& op) {
  op.set("Out", op.node(kOpType, {op.in("X")}));
}

ValueId number(Op& op, double value) { return op.scalar(value, op.dtype("X")); }

void read_log1p(Op& op) {
  op.set("Out", op.node("Log", {op.node("Add", {op.in("X"), number(op, 1)})}));
}

void read_expm1(Op& op) {
  op.set("Out", op.node("Sub", {op.node("Exp", {op.in("X")}), number(op, 1)}));
}

void set_log(Op& op, double base) {
  op.set("Out", op.node("Mul", {op.node("Log", {op.in("X")}), number(op, 1 / std::log(base))}));
}
void read_log2(Op& op) { set_log(op, 2); }
void read_log10(Op& op) { set_log(op, 10); }

/// log(x / (1 - x)), with x kept away from 0 and 1 where it is asked for.
void read_logit(Op& op) {
  const double epsilon = op.real("eps");
  ValueId x = op.in("X");
  if (epsilon > 0) x = op.node("Clip", {x, number(op, epsilon), number(op, 1 - epsilon)});
  op.set("Out", op.node("Log", {op.node("Div", {x, op.node("Sub", {number(op, 1), x})})}));
}

/// Towards zero: sign(x) * floor(|x|). Integers are whole.
void read_trunc(Op& op) {
  const ValueId x = op.in("X");
  if (!info(op.dtype("X")).is_float) {
    op.set("Out", op.node("Identity", {x}));
    return;
  }
  const ValueId whole = op.node("Floor", {op.node("Abs", {x})});
  op.set("Out", op.node("Mul", {op.node("Sign", {x}), whole}));
}

void read_celu(Op& op) {
  op.set("Out", op.node("Celu", {op.in("X")}, {{"alpha", static_cast<float>(op.real("alpha"))}}));
}

void read_selu(Op& op) {
  op.set("Out", op.node("Selu", {op.in("X")},
                        {{"alpha", static_cast<float>(op.real("alpha"))},
                         {"gamma", static_cast<float>(op.real("scale"))}}));
}

void set_shrunk(Op& op, double threshold, double bias) {
  op.set("Out",
         op.node("Shrink", {op.in("X")},
                 {{"lambd", static_cast<float>(threshold)}, {"bias", static_cast<float>(bias)}}));
}
void read_hard_shrink(Op& op) { set_shrunk(op, op.real("threshold"), 0); }
void read_softshrink(Op& op) { set_shrunk(op, op.real("lambda"), op.real("lambda")); }

void read_tanh_shrink(Op& op) {
  op.set("Out", op.node("Sub", {op.in("X"), op.node("Tanh", {op.in("X")})}));
}

/// What is not above the threshold becomes another value, 0 before Paddle 3.
void read_thresholded_relu(Op& op) {
  const double threshold = op.real("threshold");
  const double value = op.real("value");
  const ValueId x = op.in("X");
  if (value == 0) {
    op.set("Out", op.node("ThresholdedRelu", {x}, {{"alpha", static_cast<float>(threshold)}}));
    return;
  }
  const ValueId above = op.node("Greater", {x, number(op, threshold)});
  op.set("Out", op.node("Where", {above, x, number(op, value)}));
}

/// log(sigmoid(x)), without the zero that a sigmoid becomes.
void read_log_sigmoid(Op& op) {
  op.set("Out", op.node("Neg", {op.node("Softplus", {op.node("Neg", {op.in("X")})})}));
}

void read_stanh(Op& op) {
  const ValueId inner = op.node("Mul", {op.in("X"), number(op, op.real("scale_a"))});
  op.set("Out", op.node("Mul", {op.node("Tanh", {inner}), number(op, op.real("scale_b"))}));
}

/// Inference takes the middle of the slopes that training draws from.
void read_rrelu(Op& op) {
  const double slope = (op.real("lower") + op.real("upper")) / 2;
  op.set("Out", op.node("LeakyRelu", {op.in("X")}, {{"alpha", static_cast<float>(slope)}}));
}

/// The greatest of each `groups` channels that lie side by side.
void read_maxout(Op& op) {
  const auto shape = op.shape("X");
  const std::int64_t groups = op.integer("groups");
  std::int64_t axis = op.integer("axis");
  if (shape && axis < 0) axis += std::ssize(*shape);
  const bool known = shape && axis >= 0 && axis < std::ssize(*shape);
  const std::int64_t channels = known ? (*shape)[static_cast<std::size_t>(axis)] : -1;
  if (channels < 0 || groups <= 0 || channels % groups != 0) {
    fail(ErrorKind::Unsupported, "its channels are not known, or are no multiple of its groups");
  }
  const ValueId sizes = op.sizes(op.in("X"));
  std::vector<ValueId> parts;
  if (axis > 0) parts.push_back(op.slice(sizes, 0, 0, axis));
  parts.push_back(op.ints({channels / groups, groups}));
  parts.push_back(op.slice(sizes, 0, axis + 1, kEnd));
  const ValueId split =
      op.node("Reshape", {op.in("X"), op.node("Concat", parts, {{"axis", std::int64_t{0}}})});
  op.set("Out", op.reduce("ReduceMax", split, {axis + 1}, false));
}

#define QUENCH_SAME(onnx) constexpr char k##onnx[] = #onnx;
QUENCH_SAME(Acos)
QUENCH_SAME(Asin)
QUENCH_SAME(Acosh)
QUENCH_SAME(Asinh)
QUENCH_SAME(Atanh)
QUENCH_SAME(Cosh)
QUENCH_SAME(Sinh)
#undef QUENCH_SAME

constexpr auto kRows = std::to_array<OpRow>({
    {"acos", "", "X", "Out", "", read_same<kAcos>},
    {"asin", "", "X", "Out", "", read_same<kAsin>},
    {"acosh", "", "X", "Out", "", read_same<kAcosh>},
    {"asinh", "", "X", "Out", "", read_same<kAsinh>},
    {"atanh", "", "X", "Out", "", read_same<kAtanh>},
    {"cosh", "", "X", "Out", "", read_same<kCosh>},
    {"sinh", "", "X", "Out", "", read_same<kSinh>},
    {"log1p", "", "X", "Out", "", read_log1p},
    {"log2", "", "X", "Out", "", read_log2},
    {"log10", "", "X", "Out", "", read_log10},
    {"expm1", "", "X", "Out", "", read_expm1},
    {"logit", "", "X", "Out", "eps=1e-6", read_logit},
    {"trunc", "", "X", "Out", "", read_trunc},
    {"celu", "", "X", "Out", "alpha=1", read_celu},
    {"selu", "", "X", "Out", "scale=1.0507009873554805 alpha=1.6732632423543772", read_selu},
    {"hard_shrink", "hardshrink", "X", "Out", "threshold=0.5", read_hard_shrink},
    {"softshrink", "", "X", "Out", "lambda|threshold=0.5", read_softshrink},
    {"tanh_shrink", "", "X", "Out", "", read_tanh_shrink},
    {"thresholded_relu", "", "X", "Out", "threshold=1 value=0", read_thresholded_relu},
    {"logsigmoid", "", "X", "Out", "", read_log_sigmoid},
    {"stanh", "", "X", "Out", "scale_a=0.67 scale_b=1.7159", read_stanh},
    {"rrelu", "", "X", "Out Noise", "lower=0.125 upper=0.3333333333333333", read_rrelu},
    {"maxout", "", "X", "Out", "groups axis=1", read_maxout},
});

}  // namespace

std::span<const OpRow> function_rows() { return kRows; }

}  // namespace quench::paddle
