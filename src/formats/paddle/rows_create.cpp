// SPDX-License-Identifier: Apache-2.0
// Paddle's operators that make tensors of constants, shapes and sequences.
#include <array>
#include <charconv>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

/// The element type of an attribute; -1: as the input.
DType type_of(Op& op, DType otherwise) {
  const std::int64_t number = op.integer("dtype");
  return number < 0 ? otherwise : dtype_of(static_cast<std::int32_t>(number));
}

/// A number that newer programs give as text, which holds large integers exactly.
double value_of(Op& op) {
  const std::string text = op.given("str_value") ? op.text("str_value") : "";
  if (text.empty()) return op.number("value");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorKind::BadModel, "its value '{}' is no number", text);
  }
  return value;
}

ValueId filled(Op& op, ValueId shape, double value, DType dtype) {
  const Tensor one = convert(Tensor::of<double>({1}, {value}), dtype);
  return op.node("ConstantOfShape", {shape}, {{"value", one}});
}

/// Small ones become constants, so that what is computed from them is seen to be constant.
ValueId filled_constant(Op& op, const Shape& shape, double value, DType dtype) {
  constexpr std::int64_t kMostElements = 4096;
  const auto count = num_elements(shape);
  if (!count) fail(ErrorKind::BadModel, "its shape {} is not possible", to_string(shape));
  if (*count > kMostElements) return filled(op, op.ints(shape), value, dtype);
  const std::vector<double> values(static_cast<std::size_t>(*count), value);
  return op.constant(convert(Tensor::of<double>(shape, std::span<const double>(values)), dtype));
}

void read_fill_constant(Op& op) {
  const IntList shape = op.list("shape");
  const DType dtype = type_of(op, DType::Float32);
  const ValueId given = op.tensor_of("value");
  if (given != kNoValue && op.constant_of(given) == nullptr) {
    const ValueId one = op.cast(op.reshape(given, {}), dtype);
    op.set("Out", op.node("Expand", {one, op.as_value(shape)}));
    return;
  }
  const double value = value_of(op);
  op.set("Out", shape.computed() ? filled(op, shape.value, value, dtype)
                                 : filled_constant(op, shape.numbers, value, dtype));
}

void read_full_int_array(Op& op) {
  const Ints values = op.integers("value");
  const DType dtype = type_of(op, DType::Int64);
  const Tensor numbers =
      Tensor::of<std::int64_t>({std::ssize(values)}, std::span<const std::int64_t>(values));
  op.set("Out", op.constant(convert(numbers, dtype)));
}

void read_fill_like(Op& op) {
  const DType dtype = type_of(op, op.dtype("X"));
  op.set("Out", filled(op, op.sizes(op.in("X")), op.number("value"), dtype));
}

void read_zeros_like(Op& op) { op.set("Out", filled(op, op.sizes(op.in("X")), 0, op.dtype("X"))); }

/// A shape in which one size is that of an input's dimension.
void read_fill_batch_size_like(Op& op) {
  const Ints shape = op.integers("shape");
  const auto at = static_cast<std::size_t>(op.integer("output_dim_idx"));
  if (at >= shape.size()) fail(ErrorKind::BadModel, "its output_dim_idx is outside its shape");
  const ValueId size = op.size_of(op.in("Input"), op.integer("input_dim_idx"));
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    parts.push_back(i == at ? size : op.ints({shape[i]}));
  }
  op.set("Out", filled(op, op.node("Concat", parts, {{"axis", std::int64_t{0}}}), value_of(op),
                       type_of(op, DType::Float32)));
}

void read_assign(Op& op) { op.set("Out", op.node("Identity", {op.in("X")})); }

void read_assign_value(Op& op) {
  const DType dtype = type_of(op, DType::Float32);
  std::optional<Tensor> values = op.literal(dtype);
  op.set("Out", values ? op.constant(std::move(*values))
                       : filled_constant(op, op.integers("shape"), 0, dtype));
}

void read_shape(Op& op) { op.set("Out", op.cast(op.sizes(op.in("Input")), DType::Int32)); }

void read_shape64(Op& op) { op.set("Out", op.sizes(op.in("Input"))); }

void read_size(Op& op) { op.set("Out", op.node("Size", {op.in("Input")})); }

void read_range(Op& op) {
  const DType dtype = op.dtype("Out");
  const auto end = [&](std::string_view name) {
    return op.cast(op.reshape(op.in(name), {}), dtype);
  };
  const ValueId start = end("Start");
  const ValueId stop = end("End");
  op.set("Out", op.node("Range", {start, stop, end("Step")}));
}

/// start + (stop - start) / (num - 1) * i.
void read_linspace(Op& op) {
  const DType dtype = op.dtype("Out");
  const auto number = [&](std::string_view name, DType to) {
    return op.cast(op.reshape(op.in(name), {}), to);
  };
  const ValueId start = number("Start", dtype);
  const ValueId width = op.node("Sub", {number("Stop", dtype), start});
  const ValueId count = number("Num", DType::Int64);
  const ValueId one = op.constant(Tensor::scalar<std::int64_t>(1));
  const ValueId zero = op.constant(Tensor::scalar<std::int64_t>(0));
  const ValueId places = op.cast(op.node("Range", {zero, count, one}), dtype);
  const ValueId last = op.node("Max", {op.node("Sub", {count, one}), one});
  const ValueId step = op.node("Div", {width, op.cast(last, dtype)});
  op.set("Out", op.node("Add", {start, op.node("Mul", {places, step})}));
}

void read_increment(Op& op) {
  op.set("Out", op.node("Add", {op.in("X"), op.scalar(op.real("step"), op.dtype("X"))}));
}

constexpr std::string_view kValues =
    "shape dtype=5 values= fp32_values= int32_values= int64_values= bool_values=";

constexpr auto kRows = std::to_array<OpRow>({
    {"fill_constant", "full", "/ shape:ShapeTensorList,ShapeTensor value:ValueTensor", "Out",
     "shape= value=0 str_value= dtype=5", read_fill_constant},
    {"full_with_tensor", "", "value: shape:", "Out", "shape= value=0 str_value= dtype=5",
     read_fill_constant},
    {"full_int_array", "", "", "Out", "value dtype=3", read_full_int_array},
    {"fill_any_like", "full_like", "X value:", "Out", "value=0 dtype=-1", read_fill_like},
    {"fill_zeros_like", "-", "X", "Out", "", read_zeros_like},
    {"fill_constant_batch_size_like", "full_batch_size_like", "Input", "Out",
     "shape value=0 str_value= dtype=5 input_dim_idx=0 output_dim_idx=0",
     read_fill_batch_size_like},
    {"assign", "assign share_data", "X", "Out", "", read_assign},
    {"assign_out", "", "X Output", "Out", "", read_assign},
    {"assign_value", "assign_value", "/ Output", "Out", kValues, read_assign_value},
    {"shape", "", "Input", "Out", "", read_shape},
    {"shape64", "", "Input", "Out", "", read_shape64},
    {"size", "numel", "Input", "Out", "", read_size},
    {"range", "arange", "Start End Step", "Out", "", read_range},
    {"linspace", "", "Start Stop Num", "Out", "", read_linspace},
    {"increment", "", "X", "Out", "step|value=1", read_increment},
});

}  // namespace

std::span<const OpRow> create_rows() { return kRows; }

}  // namespace quench::paddle
