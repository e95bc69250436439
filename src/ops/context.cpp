// SPDX-License-Identifier: Apache-2.0
// How an inference rule reads its node's inputs and writes its outputs.
#include "ops/context.h"

#include <algorithm>

#include "ops/scope.h"

namespace quench::ops {
namespace {

// Shapes are short; a longer integer constant is data.
constexpr std::int64_t kMaxInts = 256;
constexpr int kMaxDepth = 64;
constexpr std::int64_t kNewestOpset = 1000;

std::optional<SymInts> read_ints(const Tensor& tensor) {
  if (tensor.rank() > 1 || tensor.size() > kMaxInts) return std::nullopt;
  SymInts result;
  const auto append = [&result](const auto& data) {
    for (const auto value : data) result.emplace_back(static_cast<std::int64_t>(value));
  };
  switch (tensor.dtype()) {
    case DType::Int64:
      append(tensor.data<std::int64_t>());
      break;
    case DType::Int32:
      append(tensor.data<std::int32_t>());
      break;
    case DType::Bool:
      append(tensor.data<bool>());
      break;
    default:
      return std::nullopt;
  }
  return result;
}

}  // namespace

std::int64_t InferContext::opset() const {
  const auto found = scope_.opsets.find(node_.domain);
  return found == scope_.opsets.end() ? kNewestOpset : found->second;
}

bool InferContext::has_output(std::size_t index) const noexcept {
  return index < node_.outputs.size() && node_.outputs[index] != kNoValue;
}

const ValueType& InferContext::input(std::size_t index) const {
  static const ValueType kUnknown;
  const ValueId id = node_.input(index);
  return id == kNoValue ? kUnknown : scope_.graph[id].type;
}

const Dims* InferContext::shape(std::size_t index) const {
  const ValueType& type = input(index);
  return type.kind == ValueType::Kind::Tensor && type.shape ? &*type.shape : nullptr;
}

const Tensor* InferContext::constant(std::size_t index) const {
  const ValueId id = node_.input(index);
  return id == kNoValue ? nullptr : scope_.fact(id).constant;
}

const SymInts* InferContext::ints(std::size_t index) const {
  const ValueId id = node_.input(index);
  if (id == kNoValue) return nullptr;
  Fact& fact = scope_.fact(id);
  if (!fact.looked && fact.constant != nullptr) fact.ints = read_ints(*fact.constant);
  fact.looked = true;
  return fact.ints ? &*fact.ints : nullptr;
}

std::optional<std::vector<std::int64_t>> InferContext::numbers(std::size_t index) const {
  const SymInts* values = ints(index);
  if (values == nullptr) return std::nullopt;
  std::vector<std::int64_t> result;
  result.reserve(values->size());
  for (const SymInt& value : *values) {
    if (!value.number) return std::nullopt;
    result.push_back(*value.number);
  }
  return result;
}

std::optional<std::int64_t> InferContext::number(std::size_t index) const {
  const SymInts* values = ints(index);
  return values == nullptr || values->empty() ? std::nullopt : values->front().number;
}

InferContext::Parameter InferContext::parameter(std::string_view attribute,
                                                std::size_t index) const {
  if (const auto* list = node_.get<std::vector<std::int64_t>>(attribute)) return {true, *list};
  if (!has_input(index)) return {};
  return {true, numbers(index)};
}

void InferContext::set(std::size_t index, const ValueType& type) {
  if (has_output(index)) refine(scope_, node_.outputs[index], type);
}

void InferContext::set(std::size_t index, DType dtype, std::optional<Dims> dims) {
  if (has_output(index)) set(index, ValueType::tensor(dtype, std::move(dims)));
}

void InferContext::set_like(std::size_t index, std::size_t source) { set(index, input(source)); }

void InferContext::set_ints(std::size_t index, SymInts values) {
  if (!has_output(index) || static_cast<std::int64_t>(values.size()) > kMaxInts) return;
  // A list stands for a scalar or a vector of its length only.
  const auto& dims = scope_.graph[node_.outputs[index]].type.shape;
  if (!dims || dims->size() > 1 || (dims->empty() && values.size() != 1)) return;
  if (!dims->empty() && dims->front().known() &&
      dims->front().value != static_cast<std::int64_t>(values.size())) {
    return;
  }
  Fact& fact = scope_.fact(node_.outputs[index]);
  fact.ints = std::move(values);
  fact.looked = true;
}

void InferContext::set_constant(std::size_t index, const Tensor& tensor) {
  if (has_output(index)) scope_.fact(node_.outputs[index]).constant = &tensor;
}

std::vector<ValueType> InferContext::infer_body(std::string_view attribute,
                                                const std::vector<ValueType>& inputs, Runs runs) {
  const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(),
                                  [&](const Attribute& a) { return a.name == attribute; });
  if (found == node_.attributes.end()) return {};
  auto* box = std::get_if<GraphBox>(&found->data);
  if (box == nullptr || scope_.depth >= kMaxDepth) return {};
  Scope body(scope_, **box, scope_.opsets, &scope_);
  if (runs == Runs::Perhaps) body.lenient = true;
  const std::size_t count = std::min(inputs.size(), body.graph.inputs.size());
  for (std::size_t i = 0; i < count; ++i) refine(body, body.graph.inputs[i], inputs[i]);
  infer_scope(body);
  std::vector<ValueType> result;
  for (const ValueId id : body.graph.outputs) result.push_back(body.graph[id].type);
  return result;
}

std::size_t checked_axis(std::int64_t axis, std::size_t rank, std::string_view what) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size) {
    fail(ErrorKind::BadModel, "{} is {}, but the input has {} dimensions", what, axis, rank);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

std::vector<bool> checked_axes(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<bool> flags(rank, false);
  for (const std::int64_t axis : axes) {
    const std::size_t index = checked_axis(axis, rank, "an entry of axes");
    if (flags[index]) fail(ErrorKind::BadModel, "axes names dimension {} twice", index);
    flags[index] = true;
  }
  return flags;
}

void expect_same_dtype(const InferContext& context, std::size_t a, std::size_t b) {
  const DType x = context.dtype(a);
  const DType y = context.dtype(b);
  if (x != y && x != DType::Undefined && y != DType::Undefined) {
    fail(ErrorKind::BadModel, "inputs {} and {} must have one element type, but are {} and {}", a,
         b, name_of(x), name_of(y));
  }
}

void expect_min_rank(const InferContext& context, std::size_t index, std::size_t rank) {
  const Dims* dims = context.shape(index);
  if (dims != nullptr && dims->size() < rank) {
    fail(ErrorKind::BadModel, "input {} must have at least {} dimensions, but is {}", index, rank,
         shape_text(*dims));
  }
}

void expect_rank(const InferContext& context, std::size_t index, std::size_t rank) {
  const Dims* dims = context.shape(index);
  if (dims != nullptr && dims->size() != rank) {
    fail(ErrorKind::BadModel, "input {} must have {} dimensions, but is {}", index, rank,
         shape_text(*dims));
  }
}

std::string shape_text(const Dims& dims) {
  std::string text;
  for (const Dim& dim : dims) text += (text.empty() ? "" : ",") + to_string(dim);
  return "[" + text + "]";
}

}  // namespace quench::ops
