// SPDX-License-Identifier: Apache-2.0
// TFLite's functions of one tensor, element by element.
#include <array>
#include <cmath>
#include <numbers>

#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"

namespace quench::tflite {
namespace {

/// A node of the same meaning and no attributes.
template <const char* kOpType>
void read_same(Op& op) {
  const Layout layout = op.layout();
  op.set(op.make().node(kOpType, {op.in(0, layout)}), layout);
}

#define QUENCH_SAME(tflite, onnx)         \
  constexpr char k##onnx##Name[] = #onnx; \
  constexpr OpRow k##onnx##Row{tflite, 0, "", read_same<k##onnx##Name>};
QUENCH_SAME("RELU", Relu)
QUENCH_SAME("LOGISTIC", Sigmoid)
QUENCH_SAME("TANH", Tanh)
QUENCH_SAME("EXP", Exp)
QUENCH_SAME("LOG", Log)
QUENCH_SAME("SQRT", Sqrt)
QUENCH_SAME("ABS", Abs)
QUENCH_SAME("NEG", Neg)
QUENCH_SAME("FLOOR", Floor)
QUENCH_SAME("CEIL", Ceil)
QUENCH_SAME("ROUND", Round)
QUENCH_SAME("SIN", Sin)
QUENCH_SAME("COS", Cos)
QUENCH_SAME("SIGN", Sign)
QUENCH_SAME("ELU", Elu)
QUENCH_SAME("HARD_SWISH", HardSwish)
QUENCH_SAME("LOGICAL_NOT", Not)
#undef QUENCH_SAME

template <int kMin, int kMax>
void read_clip(Op& op) {
  const Layout layout = op.layout();
  op.set(op.make().clip(op.in(0, layout), kMin, kMax), layout);
}

void read_rsqrt(Op& op) {
  const Layout layout = op.layout();
  const ValueId root = op.make().node("Sqrt", {op.in(0, layout)});
  op.set(op.make().node("Reciprocal", {root}), layout);
}

void read_square(Op& op) {
  const Layout layout = op.layout();
  const ValueId x = op.in(0, layout);
  op.set(op.make().node("Mul", {x, x}), layout);
}

void read_leaky_relu(Op& op) {
  const Layout layout = op.layout();
  op.set(op.make().node("LeakyRelu", {op.in(0, layout)},
                        {{"alpha", static_cast<float>(op.real("alpha"))}}),
         layout);
}

void read_prelu(Op& op) {
  const Layout layout = op.layout();
  const ValueId x = op.in(0, layout);
  op.set(op.make().node("PRelu", {x, op.operand(1, layout, op.rank())}), layout);
}

void read_gelu(Op& op) {
  const Layout layout = op.layout();
  GraphMaker& make = op.make();
  const ValueId x = op.in(0, layout);
  ValueId inner = kNoValue;
  if (op.number("approximate") != 0) {
    constexpr double kCubic = 0.044715;
    const ValueId cube = make.node("Mul", {x, make.node("Mul", {x, x})});
    const ValueId sum = make.node("Add", {x, make.node("Mul", {cube, make.scalar(kCubic)})});
    const double scale = std::sqrt(2 / std::numbers::pi);
    inner = make.node("Tanh", {make.node("Mul", {sum, make.scalar(scale)})});
  } else {
    inner = make.node("Erf", {make.node("Div", {x, make.scalar(std::numbers::sqrt2)})});
  }
  const ValueId gate = make.node("Add", {inner, make.scalar(1)});
  op.set(make.node("Mul", {make.node("Mul", {x, gate}), make.scalar(0.5)}), layout);
}

/// To floats or to another scale: the result's own quantisation says which.
void read_quantize(Op& op) {
  const Layout layout = op.layout();
  if (op.form() == Form::Integers && op.in_item(0).quantized()) {
    return op.set(op.in(0, layout, Form::Integers), layout, Form::Integers);
  }
  op.set(op.in(0, layout), layout);
}

/// Half-precision weights become floats: what the runtime does before its first run.
void read_dequantize(Op& op) {
  const int input = op.item().inputs.empty() ? -1 : op.item().inputs[0];
  const Tensor* data = input < 0 ? nullptr : op.translator().constant(input);
  if (data != nullptr && data->dtype() == DType::Float16) {
    op.translator().set_constant(op.item().outputs[0], convert(*data, DType::Float32));
    return;
  }
  const Layout layout = op.layout();
  if (op.in_item(0).dtype == DType::Float16) {
    return op.set(op.make().cast(op.in(0, layout), DType::Float32), layout);
  }
  op.set(op.in(0, layout), layout);
}

void read_cast(Op& op) {
  const Layout layout = op.layout();
  op.set(op.make().cast(op.in(0, layout), op.out_item().dtype), layout);
}

void read_zeros_like(Op& op) {
  const Layout layout = op.layout();
  const ValueId x = op.in(0, layout);
  op.set(op.make().node("Sub", {x, x}), layout);
}

constexpr auto kRows = std::to_array<OpRow>({
    kReluRow,
    kSigmoidRow,
    kTanhRow,
    kExpRow,
    kLogRow,
    kSqrtRow,
    kAbsRow,
    kNegRow,
    kFloorRow,
    kCeilRow,
    kRoundRow,
    kSinRow,
    kCosRow,
    kSignRow,
    kEluRow,
    kHardSwishRow,
    kNotRow,
    {"RELU6", 0, "", read_clip<0, 6>},
    {"RELU_N1_TO_1", 0, "", read_clip<-1, 1>},
    {"RELU_0_TO_1", 0, "", read_clip<0, 1>},
    {"RSQRT", 0, "", read_rsqrt},
    {"SQUARE", 0, "", read_square},
    {"LEAKY_RELU", 75, "alpha:f", read_leaky_relu},
    {"PRELU", 0, "", read_prelu},
    {"GELU", 116, "approximate:t", read_gelu},
    {"QUANTIZE", 0, "", read_quantize},
    {"DEQUANTIZE", 0, "", read_dequantize},
    {"CAST", 0, "", read_cast},
    {"ZEROS_LIKE", 0, "", read_zeros_like},
});

}  // namespace

std::span<const OpRow> function_rows() { return kRows; }

}  // namespace quench::tflite
