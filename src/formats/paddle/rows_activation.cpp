// SPDX-License-Identifier: Apache-2.0
// Paddle's functions of one tensor, element by element.
#include <array>
#include <cmath>
#include <numbers>

#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

/// A node of the same meaning and no attributes.
template <const char* kOpType>
void read_same(Op& op) {
  op.set("Out", op.node(kOpType, {op.in("X")}));
}

#define QUENCH_SAME(paddle, onnx)         \
  constexpr char k##onnx##Name[] = #onnx; \
  constexpr OpRow k##onnx##Row{paddle, "", "X", "Out", "", read_same<k##onnx##Name>};
QUENCH_SAME("relu", Relu)
QUENCH_SAME("sigmoid", Sigmoid)
QUENCH_SAME("tanh", Tanh)
QUENCH_SAME("exp", Exp)
QUENCH_SAME("log", Log)
QUENCH_SAME("sqrt", Sqrt)
QUENCH_SAME("abs", Abs)
QUENCH_SAME("floor", Floor)
QUENCH_SAME("ceil", Ceil)
QUENCH_SAME("erf", Erf)
QUENCH_SAME("sin", Sin)
QUENCH_SAME("cos", Cos)
QUENCH_SAME("tan", Tan)
QUENCH_SAME("atan", Atan)
QUENCH_SAME("sign", Sign)
QUENCH_SAME("softsign", Softsign)
QUENCH_SAME("reciprocal", Reciprocal)
QUENCH_SAME("logical_not", Not)
#undef QUENCH_SAME

ValueId half(Op& op, double value) { return op.scalar(value, op.dtype("X")); }

/// Of bool it is the logical one.
void read_bitwise_not(Op& op) {
  op.set("Out", op.node(op.dtype("X") == DType::Bool ? "Not" : "BitwiseNot", {op.in("X")}));
}

/// Paddle rounds halves away from zero, ONNX to even: sign(x) * floor(|x| + 0.5).
void read_round(Op& op) {
  const ValueId x = op.in("X");
  const ValueId above = op.node("Add", {op.node("Abs", {x}), half(op, 0.5)});
  op.set("Out", op.node("Mul", {op.node("Sign", {x}), op.node("Floor", {above})}));
}

void read_clip_to(Op& op) {
  const DType dtype = op.dtype("X");
  op.set("Out", op.node("Clip",
                        {op.in("X"), op.scalar(0, dtype), op.scalar(op.real("threshold"), dtype)}));
}

void read_rsqrt(Op& op) { op.set("Out", op.node("Reciprocal", {op.node("Sqrt", {op.in("X")})})); }

void read_square(Op& op) { op.set("Out", op.node("Mul", {op.in("X"), op.in("X")})); }

void read_silu(Op& op) {
  op.set("Out", op.node("Mul", {op.in("X"), op.node("Sigmoid", {op.in("X")})}));
}

void read_swish(Op& op) {
  const ValueId x = op.in("X");
  const double beta = op.real("beta");
  const ValueId inner = beta == 1 ? x : op.node("Mul", {x, half(op, beta)});
  op.set("Out", op.node("Mul", {x, op.node("Sigmoid", {inner})}));
}

void read_mish(Op& op) {
  const ValueId x = op.in("X");
  op.set("Out", op.node("Mul", {x, op.node("Tanh", {op.node("Softplus", {x})})}));
}

void read_leaky_relu(Op& op) {
  op.set("Out",
         op.node("LeakyRelu", {op.in("X")}, {{"alpha", static_cast<float>(op.real("alpha"))}}));
}

void read_elu(Op& op) {
  op.set("Out", op.node("Elu", {op.in("X")}, {{"alpha", static_cast<float>(op.real("alpha"))}}));
}

void read_prelu(Op& op) {
  const std::string mode = op.text("mode");
  ValueId alpha = op.in("Alpha");
  const std::int64_t rank = op.need_rank("X");
  if (mode == "channel" && op.text("data_format") != "NHWC" && rank > 2) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rank) - 1, 1);
    shape.front() = -1;
    alpha = op.reshape(alpha, shape);
  } else if (mode != "element") {
    alpha = op.reshape(alpha, {-1});
  }
  op.set("Out", op.node("PRelu", {op.in("X"), alpha}));
}

void read_hard_sigmoid(Op& op) {
  op.set("Out", op.node("HardSigmoid", {op.in("X")},
                        {{"alpha", static_cast<float>(op.real("slope"))},
                         {"beta", static_cast<float>(op.real("offset"))}}));
}

void read_hard_swish(Op& op) {
  const ValueId x = op.in("X");
  const double threshold = op.real("threshold");
  const double scale = op.real("scale");
  const double offset = op.real("offset");
  if (threshold == 6 && scale == 6 && offset == 3) {
    op.set("Out", op.node("HardSwish", {x}));
    return;
  }
  const ValueId moved = op.node("Add", {x, half(op, offset)});
  const ValueId gate = op.node("Clip", {moved, half(op, 0), half(op, threshold)});
  op.set("Out", op.node("Div", {op.node("Mul", {x, gate}), half(op, scale)}));
}

void read_gelu(Op& op) {
  const ValueId x = op.in("X");
  ValueId inner = kNoValue;
  if (op.flag("approximate")) {
    const ValueId cube = op.node("Mul", {x, op.node("Mul", {x, x})});
    const ValueId sum = op.node("Add", {x, op.node("Mul", {cube, half(op, 0.044715)})});
    inner = op.node("Tanh", {op.node("Mul", {sum, half(op, std::sqrt(2 / std::numbers::pi))})});
  } else {
    inner = op.node("Erf", {op.node("Div", {x, half(op, std::numbers::sqrt2)})});
  }
  const ValueId product = op.node("Mul", {x, op.node("Add", {inner, half(op, 1)})});
  op.set("Out", op.node("Mul", {product, half(op, 0.5)}));
}

void read_softplus(Op& op) {
  const double beta = op.real("beta");
  if (beta == 1) {
    op.set("Out", op.node("Softplus", {op.in("X")}));
    return;
  }
  const ValueId scaled = op.node("Mul", {op.in("X"), half(op, beta)});
  op.set("Out", op.node("Div", {op.node("Softplus", {scaled}), half(op, beta)}));
}

void read_hard_tanh(Op& op) {
  const DType dtype = op.dtype("X");
  op.set("Out", op.node("Clip", {op.in("X"), op.scalar(op.real("t_min"), dtype),
                                 op.scalar(op.real("t_max"), dtype)}));
}

void read_softmax(Op& op) {
  op.set("Out", op.node("Softmax", {op.in("X")}, {{"axis", op.integer("axis")}}));
}

void read_log_softmax(Op& op) {
  op.set("Out", op.node("LogSoftmax", {op.in("X")}, {{"axis", op.integer("axis")}}));
}

/// Inference of the older kind scales by what training kept.
void read_dropout(Op& op) {
  const double p = op.number("dropout_prob");
  if (op.text("dropout_implementation") == "upscale_in_train" || p == 0) {
    op.set("Out", op.node("Identity", {op.in("X")}));
  } else {
    op.set("Out", op.node("Mul", {op.in("X"), half(op, 1 - p)}));
  }
}

constexpr auto kRows = std::to_array<OpRow>({
    kReluRow,
    kSigmoidRow,
    kTanhRow,
    kExpRow,
    kLogRow,
    kSqrtRow,
    kAbsRow,
    kFloorRow,
    kCeilRow,
    kErfRow,
    kSinRow,
    kCosRow,
    kTanRow,
    kAtanRow,
    kSignRow,
    kSoftsignRow,
    kReciprocalRow,
    kNotRow,
    {"bitwise_not", "", "X", "Out", "", read_bitwise_not, 18},
    {"round", "", "X", "Out", "", read_round},
    {"relu6", "", "X", "Out", "threshold=6", read_clip_to},
    {"brelu", "hardtanh", "X", "Out", "t_min=0 t_max=24", read_hard_tanh},
    {"rsqrt", "", "X", "Out", "", read_rsqrt},
    {"square", "", "X", "Out", "", read_square},
    {"silu", "", "X", "Out", "", read_silu},
    {"swish", "", "X", "Out", "beta=1", read_swish},
    {"mish", "", "X", "Out", "", read_mish},
    {"leaky_relu", "", "X", "Out", "alpha|negative_slope=0.02", read_leaky_relu},
    {"elu", "", "X", "Out", "alpha=1", read_elu},
    {"prelu", "", "X Alpha", "Out", "mode=all data_format=NCHW", read_prelu},
    {"hard_sigmoid", "hardsigmoid", "X", "Out", "slope=0.2 offset=0.5", read_hard_sigmoid},
    {"hard_swish", "hardswish", "X", "Out", "threshold=6 scale=6 offset=3", read_hard_swish, 14},
    {"gelu", "", "X", "Out", "approximate=false", read_gelu},
    {"softplus", "", "X", "Out", "beta=1 threshold=20", read_softplus},
    {"softmax", "", "X", "Out", "axis=-1", read_softmax},
    {"log_softmax", "", "X", "Out", "axis=-1", read_log_softmax},
    {"dropout", "", "X Seed dropout_prob:", "Out Mask",
     "dropout_prob|p=0.5 dropout_implementation|mode=downgrade_in_infer", read_dropout},
});

}  // namespace

std::span<const OpRow> activation_rows() { return kRows; }

}  // namespace quench::paddle
