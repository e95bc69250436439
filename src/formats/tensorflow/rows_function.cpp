// SPDX-License-Identifier: Apache-2.0
// TensorFlow's functions of one tensor and of two, element by element.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"

namespace quench::tensorflow {
namespace {

/// What normalisation computes of its constants: done here, so that it can be folded into layers.
std::optional<float> computed(std::string_view op, float x, float y) {
  if (op == "ADD") return x + y;
  if (op == "SUB") return x - y;
  if (op == "MUL") return x * y;
  if (op == "DIV") return x / y;
  if (op == "SQRT") return std::sqrt(x);
  if (op == "RSQRT") return 1 / std::sqrt(x);
  return std::nullopt;
}

/// A constant of constants; nothing where an input is computed, or large.
std::optional<Tensor> folded(const Step& step, const Shape& shape) {
  constexpr std::int64_t kMost = 1 << 16;
  const auto count = num_elements(shape);
  if (!count || *count > kMost || *count == 0) return std::nullopt;
  std::vector<std::vector<float>> inputs;
  for (std::size_t i = 0; i < step.num_inputs(); ++i) {
    const Tensor* data = step.constant(i);
    if (data == nullptr || data->dtype() != DType::Float32) return std::nullopt;
    if (data->size() != 1 && data->size() != *count) return std::nullopt;
    inputs.push_back(to_float(*data));
  }
  Tensor result = Tensor::zeros(DType::Float32, shape);
  const auto to = result.mutable_data<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const auto at = [&](std::size_t n) {
      const auto& numbers = inputs[std::min(n, inputs.size() - 1)];
      return numbers[numbers.size() == 1 ? 0 : i];
    };
    const auto number = computed(step.as(), at(0), at(1));
    if (!number) return std::nullopt;
    to[i] = *number;
  }
  return result;
}

void lower_same(Step& step) {
  if (const auto data = folded(step, step.shape())) {
    return step.set(step.add_constant(step.result_name(), *data));
  }
  step.set(step.make(step.as(), {step.in()}, step.shape(), step.dtype()));
}

void lower_leaky(Step& step) {
  step.set(step.make("LEAKY_RELU", {step.in()}, step.shape(), step.dtype(),
                     {{"alpha", step.real("alpha", 0.2)}}));
}

void lower_softmax(Step& step) {
  step.set(step.make(step.as(), {step.in()}, step.shape(), step.dtype(), {{"beta", 1.0}}));
}

/// Numbers of shapes are computed while the graph is read; nothing where they are not known, or are
/// too many to be those of a shape.
std::optional<Ints> computed_sizes(const Step& step) {
  constexpr std::size_t kMost = 8;
  if (step.dtype(0) != DType::Int32 && step.dtype(0) != DType::Int64) return std::nullopt;
  const auto a = step.sizes(0);
  const auto b = step.sizes(1);
  if (!a || !b || a->empty() || b->empty() || a->size() > kMost || b->size() > kMost) {
    return std::nullopt;
  }
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return std::nullopt;
  Ints result;
  for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const std::int64_t x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    constexpr std::int64_t kLargest = std::int64_t{1} << 31;
    const bool sound = x != kOpen && y != kOpen && std::abs(x) < kLargest && std::abs(y) < kLargest;
    if (!sound) {
      result.push_back(kOpen);
    } else if (step.as() == "ADD") {
      result.push_back(x + y);
    } else if (step.as() == "SUB") {
      result.push_back(x - y);
    } else if (step.as() == "MUL") {
      result.push_back(x * y);
    } else if (step.as() == "FLOOR_DIV" && x >= 0 && y > 0) {
      result.push_back(x / y);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

void lower_two(Step& step) {
  const Shape shape = broadcast(step.shape(0), step.shape(1));
  if (const auto data = folded(step, shape)) {
    return step.set(step.add_constant(step.result_name(), *data));
  }
  if (const auto numbers = computed_sizes(step)) {
    if (num_elements(shape).value_or(0) == std::ssize(*numbers)) {
      return step.set_sizes(*numbers, shape);
    }
  }
  step.set(step.make(step.as(), {step.in(0), step.in(1)}, shape, step.dtype()));
}

void lower_compare(Step& step) {
  const Shape shape = broadcast(step.shape(0), step.shape(1));
  step.set(step.make(step.as(), {step.in(0), step.in(1)}, shape, DType::Bool));
}

void lower_add_n(Step& step) {
  std::vector<int> inputs;
  Shape shape = step.shape();
  for (std::size_t i = 0; i < step.num_inputs(); ++i) {
    inputs.push_back(step.in(i));
    shape = broadcast(shape, step.shape(i));
  }
  step.set(step.make("ADD_N", inputs, shape, step.dtype()));
}

void lower_select(Step& step) {
  const Shape shape = broadcast(broadcast(step.shape(1), step.shape(2)),
                                step.rank(0) == step.rank(1) ? step.shape(0) : step.shape(1));
  step.set(step.make(step.as(), {step.in(0), step.in(1), step.in(2)}, shape, step.dtype(1)));
}

void lower_cast(Step& step) {
  const DType to = step.type("DstT", DType::Undefined);
  const bool whole = to == DType::Int32 || to == DType::Int64;
  const DType from = step.dtype();
  if (whole && (from == DType::Int32 || from == DType::Int64)) {
    if (const auto numbers = step.sizes(0)) return step.set_sizes(*numbers, step.shape());
  }
  step.set(step.make("CAST", {step.in()}, step.shape(), to));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Relu", lower_same, "RELU"},
    {"Relu6", lower_same, "RELU6"},
    {"Elu", lower_same, "ELU"},
    {"Sigmoid", lower_same, "LOGISTIC"},
    {"Tanh", lower_same, "TANH"},
    {"Exp", lower_same, "EXP"},
    {"Log", lower_same, "LOG"},
    {"Sqrt", lower_same, "SQRT"},
    {"Rsqrt", lower_same, "RSQRT"},
    {"Square", lower_same, "SQUARE"},
    {"Abs", lower_same, "ABS"},
    {"Neg", lower_same, "NEG"},
    {"Floor", lower_same, "FLOOR"},
    {"Ceil", lower_same, "CEIL"},
    {"Round", lower_same, "ROUND"},
    {"Sin", lower_same, "SIN"},
    {"Cos", lower_same, "COS"},
    {"Sign", lower_same, "SIGN"},
    {"LogicalNot", lower_same, "LOGICAL_NOT"},
    {"ZerosLike", lower_same, "ZEROS_LIKE"},
    {"LeakyRelu", lower_leaky},
    {"Softmax", lower_softmax, "SOFTMAX"},
    {"LogSoftmax", lower_same, "LOG_SOFTMAX"},
    {"Add", lower_two, "ADD"},
    {"AddV2", lower_two, "ADD"},
    {"Sub", lower_two, "SUB"},
    {"Mul", lower_two, "MUL"},
    {"Div", lower_two, "DIV"},
    {"RealDiv", lower_two, "DIV"},
    {"FloorDiv", lower_two, "FLOOR_DIV"},
    {"FloorMod", lower_two, "FLOOR_MOD"},
    {"Maximum", lower_two, "MAXIMUM"},
    {"Minimum", lower_two, "MINIMUM"},
    {"Pow", lower_two, "POW"},
    {"SquaredDifference", lower_two, "SQUARED_DIFFERENCE"},
    {"Less", lower_compare, "LESS"},
    {"LessEqual", lower_compare, "LESS_EQUAL"},
    {"Greater", lower_compare, "GREATER"},
    {"GreaterEqual", lower_compare, "GREATER_EQUAL"},
    {"Equal", lower_compare, "EQUAL"},
    {"NotEqual", lower_compare, "NOT_EQUAL"},
    {"LogicalAnd", lower_compare, "LOGICAL_AND"},
    {"LogicalOr", lower_compare, "LOGICAL_OR"},
    {"AddN", lower_add_n},
    {"Select", lower_select, "SELECT"},
    {"SelectV2", lower_select, "SELECT_V2"},
    {"Cast", lower_cast},
});

}  // namespace

std::span<const OpRow> function_rows() { return kRows; }

}  // namespace quench::tensorflow
