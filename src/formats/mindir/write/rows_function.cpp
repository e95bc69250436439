// SPDX-License-Identifier: Apache-2.0
// Functions element by element, reductions and quantisation as MindIR's operators.
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/mindir/write/writer.h"

namespace quench::mindir::write {
namespace {

std::string_view as(const Node& node) { return find_write_row(node.op_type)->as; }

void write_same(Writer& writer, const Node& node) {
  writer.add(as(node), {writer.name(node.inputs[0])}, node.outputs[0]);
}

void write_two(Writer& writer, const Node& node) {
  if (node.inputs.size() != 2) fail(ErrorKind::Unsupported, "only of two inputs is it written");
  writer.add(as(node), {writer.name(node.inputs[0]), writer.name(node.inputs[1])}, node.outputs[0]);
}

void write_log(Writer& writer, const Node& node) {
  writer.add("Log", {real("base", -1), real("scale", 1), real("shift", 0)},
             {writer.name(node.inputs[0])}, node.outputs[0]);
}

void write_round(Writer& writer, const Node& node) {
  writer.add("Round", {writer.name(node.inputs[0]), writer.argument(std::int64_t{0})},
             node.outputs[0]);
}

void write_elu(Writer& writer, const Node& node) {
  writer.add("Elu",
             {writer.name(node.inputs[0]),
              writer.argument(static_cast<double>(node.get_float("alpha", 1)))},
             node.outputs[0]);
}

/// The greater of x and its share, or the lesser where that is more than all of it.
void write_leaky(Writer& writer, const Node& node) {
  const float slope = node.get_float("alpha", 0.01F);
  const ValueId y = node.outputs[0];
  const std::string x = writer.name(node.inputs[0]);
  const std::string part = writer.between("Mul", {x, writer.tensor(Tensor::scalar(slope))},
                                          DType::Float32, writer.shape(y));
  writer.add(slope <= 1 ? "Maximum" : "Minimum", {part, x}, y);
}

void write_hard_sigmoid(Writer& writer, const Node& node) {
  constexpr float kSixth = 1.0F / 6;
  const bool same = std::abs(node.get_float("alpha", 0.2F) - kSixth) < 1e-4F &&
                    node.get_float("beta", 0.5F) == 0.5F;
  if (!same) fail(ErrorKind::Unsupported, "MindIR's has a slope of 1/6 alone");
  write_same(writer, node);
}

void write_clip(Writer& writer, const Node& node) {
  constexpr double kMost = 3.4028235e38;
  const auto limit = [&](std::size_t input, double otherwise) {
    if (node.input(input) == kNoValue) return otherwise;
    const Tensor* data = writer.constant(node.input(input));
    if (data == nullptr || data->size() != 1) fail(ErrorKind::Unsupported, "a limit is computed");
    return static_cast<double>(to_float(*data)[0]);
  };
  const double low = limit(1, -kMost), high = limit(2, kMost);
  const std::string x = writer.name(node.inputs[0]);
  if (low == 0 && high == 6) return writer.add("ReLU6", {x}, node.outputs[0]);
  writer.add("ClampScalar", {x, writer.argument(low), writer.argument(high)}, node.outputs[0]);
}

void write_prelu(Writer& writer, const Node& node) {
  const Tensor* slope = writer.constant(node.inputs[1]);
  if (slope == nullptr) fail(ErrorKind::Unsupported, "its slope is computed");
  const std::int64_t channels =
      writer.rank(node.inputs[0]) > 1 ? writer.shape(node.inputs[0])[1] : 1;
  if (slope->size() != 1 && slope->size() != channels) {
    fail(ErrorKind::Unsupported, "it has not one slope for each channel");
  }
  writer.add("PReLU",
             {writer.name(node.inputs[0]), writer.tensor(slope->reshaped({slope->size()}))},
             node.outputs[0]);
}

void write_softmax(Writer& writer, const Node& node) {
  writer.add("Softmax",
             {writer.name(node.inputs[0]), writer.argument(Ints{node.get_int("axis", -1)})},
             node.outputs[0]);
}

void write_log_softmax(Writer& writer, const Node& node) {
  writer.add("LogSoftmax", {writer.name(node.inputs[0]), writer.argument(node.get_int("axis", -1))},
             node.outputs[0]);
}

void write_cast(Writer& writer, const Node& node) {
  const auto to = static_cast<DType>(node.get_int("to", 0));
  writer.add("Cast", {writer.name(node.inputs[0]), writer.argument(argument_of(to))},
             node.outputs[0]);
}

void write_select(Writer& writer, const Node& node) {
  writer.add(
      "Select",
      {writer.name(node.inputs[0]), writer.name(node.inputs[1]), writer.name(node.inputs[2])},
      node.outputs[0]);
}

/// Axes are an attribute, or from some version on an input.
Ints axes_of(const Writer& writer, const Node& node) {
  Ints axes = node.get_ints("axes");
  if (const Tensor* data = writer.constant(node.input(1))) {
    const Tensor wide = convert(*data, DType::Int64);
    axes.assign(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
  } else if (node.input(1) != kNoValue) {
    fail(ErrorKind::Unsupported, "its dimensions are computed");
  }
  if (axes.empty()) {
    for (std::int64_t i = 0; i < writer.rank(node.inputs[0]); ++i) axes.push_back(i);
  }
  return axes;
}

void write_reduce(Writer& writer, const Node& node) {
  std::vector<std::string> inputs{writer.name(node.inputs[0]),
                                  writer.argument(axes_of(writer, node)),
                                  writer.argument(node.get_int("keepdims", 1) != 0)};
  if (as(node) == "SumExt") inputs.push_back(writer.nothing());
  writer.add(as(node), inputs, node.outputs[0]);
}

void write_arg_max(Writer& writer, const Node& node) {
  if (node.get_int("keepdims", 1) != 0 || node.get_int("select_last_index", 0) != 0) {
    fail(ErrorKind::Unsupported, "it keeps its dimension, or takes the last of several");
  }
  writer.add("Argmax",
             {writer.name(node.inputs[0]), writer.argument(node.get_int("axis", 0)),
              writer.argument(argument_of(DType::Int64))},
             node.outputs[0]);
}

/// Scales or zero points in a shape that fits a tensor along a dimension.
Tensor placed(const Tensor& numbers, std::int64_t rank, std::int64_t axis) {
  if (numbers.size() == 1) return convert(numbers, DType::Float32).reshaped({});
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = numbers.size();
  return convert(numbers, DType::Float32).reshaped(shape);
}

struct Scales {
  Tensor scale;
  std::optional<Tensor> zero;  ///< where it is not zero
  DType dtype = DType::UInt8;
};

Scales scales_of(const Writer& writer, const Node& node) {
  const Tensor* scale = writer.constant(node.input(1));
  const Tensor* zero = writer.constant(node.input(2));
  const std::int64_t rank = writer.rank(node.inputs[0]);
  const std::int64_t axis = node.get_int("axis", 1);
  const bool fits = scale != nullptr && (scale->size() == 1 || (scale->rank() == 1 && rank > 0));
  if (!fits || node.get_int("block_size", 0) != 0 ||
      (node.input(2) != kNoValue && zero == nullptr)) {
    fail(ErrorKind::Unsupported, "its scales are computed, or are those of blocks");
  }
  Scales result{.scale = placed(*scale, rank, axis)};
  if (zero == nullptr) return result;
  result.dtype = zero->dtype();
  for (const float each : to_float(*zero)) {
    if (each != 0) result.zero = placed(*zero, rank, axis);
  }
  return result;
}

/// MindSpore has no quantised operators, so the arithmetic itself is written: rounded, limited.
void write_quantize(Writer& writer, const Node& node) {
  const Scales given = scales_of(writer, node);
  const Shape shape = writer.shape(node.outputs[0]);
  const bool is_signed = given.dtype == DType::Int8;
  if (!is_signed && given.dtype != DType::UInt8) {
    fail(ErrorKind::Unsupported, "it quantises to {}; 8 bits are written", name_of(given.dtype));
  }
  const auto step = [&](std::string_view op, const std::vector<std::string>& inputs) {
    return writer.between(op, inputs, DType::Float32, shape);
  };
  std::string x = step("Div", {writer.name(node.inputs[0]), writer.tensor(given.scale)});
  x = step("Round", {x, writer.argument(std::int64_t{0})});
  if (given.zero) x = step("Add", {x, writer.tensor(*given.zero)});
  x = step("ClampScalar", {x, writer.argument(is_signed ? -128.0 : 0.0),
                           writer.argument(is_signed ? 127.0 : 255.0)});
  writer.add("Cast", {x, writer.argument(argument_of(given.dtype))}, node.outputs[0]);
}

void write_dequantize(Writer& writer, const Node& node) {
  const Scales given = scales_of(writer, node);
  const Shape shape = writer.shape(node.outputs[0]);
  std::string x = writer.between(
      "Cast", {writer.name(node.inputs[0]), writer.argument(argument_of(DType::Float32))},
      DType::Float32, shape);
  if (given.zero) {
    x = writer.between("Sub", {x, writer.tensor(*given.zero)}, DType::Float32, shape);
  }
  writer.add("Mul", {x, writer.tensor(given.scale)}, node.outputs[0]);
}

constexpr auto kRows = std::to_array<WriteRow>({
    {"Relu", write_same, "ReLU"},
    {"Sigmoid", write_same, "Sigmoid"},
    {"Tanh", write_same, "Tanh"},
    {"Abs", write_same, "Abs"},
    {"Neg", write_same, "Neg"},
    {"Exp", write_same, "Exp"},
    {"Sqrt", write_same, "Sqrt"},
    {"Floor", write_same, "Floor"},
    {"Ceil", write_same, "Ceil"},
    {"Sin", write_same, "Sin"},
    {"Cos", write_same, "Cos"},
    {"Erf", write_same, "Erf"},
    {"Sign", write_same, "Sign"},
    {"Reciprocal", write_same, "Reciprocal"},
    {"Not", write_same, "LogicalNot"},
    {"HardSwish", write_same, "HSwish"},
    {"HardSigmoid", write_hard_sigmoid, "HSigmoid"},
    {"Log", write_log},
    {"Round", write_round},
    {"Elu", write_elu},
    {"LeakyRelu", write_leaky},
    {"PRelu", write_prelu},
    {"Clip", write_clip},
    {"Softmax", write_softmax},
    {"LogSoftmax", write_log_softmax},
    {"Cast", write_cast},
    {"Where", write_select},
    {"Add", write_two, "Add"},
    {"Sub", write_two, "Sub"},
    {"Mul", write_two, "Mul"},
    {"Div", write_two, "Div"},
    {"Pow", write_two, "Pow"},
    {"Max", write_two, "Maximum"},
    {"Min", write_two, "Minimum"},
    {"Greater", write_two, "Greater"},
    {"GreaterOrEqual", write_two, "GreaterEqual"},
    {"Less", write_two, "Less"},
    {"LessOrEqual", write_two, "LessEqual"},
    {"Equal", write_two, "Equal"},
    {"And", write_two, "LogicalAnd"},
    {"Or", write_two, "LogicalOr"},
    {"ReduceMean", write_reduce, "ReduceMean"},
    {"ReduceSum", write_reduce, "SumExt"},
    {"ReduceMax", write_reduce, "ReduceMax"},
    {"ReduceMin", write_reduce, "ReduceMin"},
    {"ArgMax", write_arg_max},
    {"QuantizeLinear", write_quantize},
    {"DequantizeLinear", write_dequantize},
});

}  // namespace

std::span<const WriteRow> function_rows() { return kRows; }

}  // namespace quench::mindir::write
