// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: their bodies are graphs of their own.
#include <algorithm>

#include "ops/context.h"

namespace quench::ops {
namespace {

using Kind = ValueType::Kind;

/// What holds whichever of two branches ran.
ValueType common(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind || a.kind != Kind::Tensor) return a.kind == b.kind ? a : ValueType{};
  if (a.dtype != b.dtype) return ValueType{};
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return ValueType::tensor(a.dtype);
  ValueType result = a;
  for (std::size_t i = 0; i < a.shape->size(); ++i) {
    (*result.shape)[i] = either((*a.shape)[i], (*b.shape)[i]);
  }
  return result;
}

/// A value that a loop carries keeps its element type; its shape may change on the way.
ValueType carried(const ValueType& type) {
  return type.kind == Kind::Tensor ? ValueType::tensor(type.dtype) : type;
}

ValueType stacked(const ValueType& type, const Dim& count, std::int64_t axis) {
  if (type.kind != Kind::Tensor || !type.shape) return carried(type);
  ValueType result = type;
  const std::size_t at = checked_axis(axis, type.shape->size() + 1);
  result.shape->insert(result.shape->begin() + static_cast<std::ptrdiff_t>(at), count);
  return result;
}

ValueType element(const ValueType& type, std::int64_t axis) {
  if (type.kind != Kind::Tensor || !type.shape) return carried(type);
  ValueType result = type;
  const std::size_t at = checked_axis(axis, type.shape->size());
  result.shape->erase(result.shape->begin() + static_cast<std::ptrdiff_t>(at));
  return result;
}

std::int64_t axis_at(const std::vector<std::int64_t>& axes, std::size_t index) {
  return index < axes.size() ? axes[index] : 0;
}

/// The types that a Scan body sees: states as they are, scanned inputs without their axis.
std::vector<ValueType> scan_inputs(const InferContext& context, std::size_t states, Dim& length) {
  const auto axes = context.node().get_ints("scan_input_axes");
  std::vector<ValueType> inputs;
  for (std::size_t i = 0; i < context.num_inputs(); ++i) {
    if (i < states) {
      inputs.push_back(carried(context.input(i)));
      continue;
    }
    const std::int64_t axis = axis_at(axes, i - states);
    inputs.push_back(element(context.input(i), axis));
    if (const Dims* dims = context.shape(i)) {
      const auto both = unify(length, (*dims)[checked_axis(axis, dims->size())]);
      if (!both) fail(ErrorKind::BadModel, "the scanned inputs have different lengths");
      length = *both;
    }
  }
  return inputs;
}

/// In opset 8 Scan had a batch dimension and the lengths of its sequences as first input.
void infer_scan_8(InferContext& context, std::size_t scanned) {
  std::vector<ValueType> inputs;
  for (std::size_t i = 1; i < context.num_inputs(); ++i) {
    inputs.push_back(carried(context.input(i)));
  }
  const auto outputs = context.infer_body("body", inputs, InferContext::Runs::Surely);
  const std::size_t states = inputs.size() - std::min(scanned, inputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    context.set(i, i < states ? context.input(i + 1) : carried(outputs[i]));
  }
}

/// The count and the condition of a loop: scalars, or vectors of one where the body says so.
ValueType loop_input(const InferContext& context, std::size_t index, DType dtype) {
  const auto* body = context.node().get<GraphBox>("body");
  const bool known = body != nullptr && index < (*body)->inputs.size();
  const Value* value = known ? &(**body)[(*body)->inputs[index]] : nullptr;
  const bool vector = value != nullptr && value->type.shape && value->type.shape->size() == 1;
  return ValueType::tensor(dtype, vector ? Dims{{1, ""}} : Dims{});
}

}  // namespace

void infer_if(InferContext& context) {
  // Exporters write "if this dimension is 1, squeeze it": only one branch has to make sense.
  using Runs = InferContext::Runs;
  const auto yes = context.infer_body("then_branch", {}, Runs::Perhaps);
  const auto no = context.infer_body("else_branch", {}, Runs::Perhaps);
  if (const auto condition = context.number(0)) {
    const auto& taken = *condition != 0 ? yes : no;
    for (std::size_t i = 0; i < taken.size(); ++i) context.set(i, taken[i]);
    return;
  }
  const std::size_t count = std::min(yes.size(), no.size());
  for (std::size_t i = 0; i < count; ++i) context.set(i, common(yes[i], no[i]));
}

void infer_loop(InferContext& context) {
  std::vector<ValueType> inputs{loop_input(context, 0, DType::Int64),
                                loop_input(context, 1, DType::Bool)};
  for (std::size_t i = 2; i < context.num_inputs(); ++i) {
    inputs.push_back(carried(context.input(i)));
  }
  const auto outputs = context.infer_body("body", inputs, InferContext::Runs::Surely);
  const std::size_t states = inputs.size() - 2;
  // The loop may stop early, so the trip count does not tell how many results are stacked.
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    const bool state = i - 1 < states;
    context.set(i - 1,
                state ? common(outputs[i], context.input(i + 1)) : stacked(outputs[i], Dim{}, 0));
  }
}

void infer_scan(InferContext& context) {
  const std::int64_t scanned = context.node().get_int("num_scan_inputs", 0);
  const auto inputs = static_cast<std::int64_t>(context.num_inputs());
  if (scanned < 1 || scanned > inputs) {
    fail(ErrorKind::BadModel, "num_scan_inputs is {}, but there are {} inputs", scanned, inputs);
  }
  if (context.opset() < 9) return infer_scan_8(context, static_cast<std::size_t>(scanned));
  const auto states = static_cast<std::size_t>(inputs - scanned);
  Dim length;
  const auto outputs =
      context.infer_body("body", scan_inputs(context, states, length), InferContext::Runs::Surely);
  const auto axes = context.node().get_ints("scan_output_axes");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    context.set(i, i < states ? common(outputs[i], context.input(i))
                              : stacked(outputs[i], length, axis_at(axes, i - states)));
  }
}

}  // namespace quench::ops
