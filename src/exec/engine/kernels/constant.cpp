// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors or change their element type.
#include <cmath>

#include "exec/engine/bridge.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

/// The libtorch type of an attribute that holds an ONNX type number.
std::optional<at::ScalarType> type_attribute(const Node& node, std::string_view name,
                                             DType otherwise) {
  const std::int64_t number = node.get_int(name, static_cast<std::int64_t>(otherwise));
  return scalar_type(static_cast<DType>(number));
}

Kernel::Refusal no_such_type(const Node& node, std::string_view name) {
  const auto dtype = static_cast<DType>(node.get_int(name, 0));
  return refuse("the engine cannot compute with {} tensors", name_of(dtype));
}

Kernel make_cast(const OpContext& context) {
  const auto type = type_attribute(context.node, "to", DType::Undefined);
  if (!type) return no_such_type(context.node, "to");
  return map_input([type](const at::Tensor& x) { return x.to(*type); });
}

Kernel make_cast_like(const OpContext&) {
  return [](Call& call) { call.set(0, call.in(0).to(call.in(1).scalar_type())); };
}

template <typename T>
std::optional<Tensor> from_list(const Node& node, std::string_view name) {
  const auto* values = node.get<std::vector<T>>(name);
  if (values == nullptr) return std::nullopt;
  return Tensor::of<T>({static_cast<std::int64_t>(values->size())}, std::span<const T>(*values));
}

template <typename T>
std::optional<Tensor> from_scalar(const Node& node, std::string_view name) {
  const auto* value = node.get<T>(name);
  return value == nullptr ? std::nullopt : std::optional(Tensor::scalar<T>(*value));
}

std::optional<Tensor> constant_value(const Node& node) {
  if (const auto* tensor = node.get<Tensor>("value")) return *tensor;
  if (auto found = from_scalar<float>(node, "value_float")) return found;
  if (auto found = from_scalar<std::int64_t>(node, "value_int")) return found;
  if (auto found = from_list<float>(node, "value_floats")) return found;
  return from_list<std::int64_t>(node, "value_ints");
}

Kernel make_constant(const OpContext& context) {
  const auto value = constant_value(context.node);
  if (!value) return refuse("only dense tensors of numbers are supported as constants");
  if (!scalar_type(value->dtype())) {
    return refuse("the engine cannot compute with {} tensors", name_of(value->dtype()));
  }
  return [value = to_torch(*value)](Call& call) { call.set(0, value); };
}

Kernel make_constant_of_shape(const OpContext& context) {
  at::Tensor value = at::zeros({}, at::kFloat);
  if (const auto* given = context.node.get<Tensor>("value")) {
    if (!scalar_type(given->dtype())) {
      return refuse("the engine cannot compute with {} tensors", name_of(given->dtype()));
    }
    if (given->size() != 1) return refuse("value must have one element, not {}", given->size());
    value = to_torch(*given).reshape({}).clone();
  }
  return map_input(
      [value](const at::Tensor& shape) { return value.expand(to_ints(shape)).contiguous(); });
}

Kernel make_range(const OpContext&) {
  return [](Call& call) {
    for (const std::size_t i : {0U, 1U, 2U}) {
      if (call.in(i).numel() == 1) continue;
      fail(ErrorKind::BadData, "start, limit and delta must be one number each, not {}",
           to_string(call.in(i).sizes().vec()));
    }
    const at::Tensor& start = call.in(0);
    const double span = to_double(call.in(1)) - to_double(start);
    const double count = std::max(std::ceil(span / to_double(call.in(2))), 0.0);
    if (!(count < 1e12)) fail(ErrorKind::BadData, "a range of {} elements is too long", count);
    const at::Tensor steps = at::arange(static_cast<std::int64_t>(count), start.options());
    call.set(0, steps * call.in(2).reshape({}) + start.reshape({}));
  };
}

Kernel make_eye_like(const OpContext& context) {
  const bool given = context.node.find("dtype") != nullptr;
  const auto type = type_attribute(context.node, "dtype", DType::Float32);
  if (!type) return no_such_type(context.node, "dtype");
  const std::int64_t shift = context.node.get_int("k", 0);
  return map_input([=](const at::Tensor& x) {
    at::Tensor result = at::zeros(x.sizes(), given ? *type : x.scalar_type());
    if (shift < result.size(1) && -shift < result.size(0)) result.diagonal(shift).fill_(1);
    return result;
  });
}

Kernel make_one_hot(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", -1);
  return [axis](Call& call) {
    const std::int64_t depth = to_int(call.in(1));
    const at::Tensor values = call.in(2);
    at::Tensor indices = call.in(0).to(at::kLong);
    indices = at::where(indices < 0, indices + depth, indices);
    const std::int64_t at = wrap_axis(axis, indices.dim() + 1);
    const at::Tensor classes = along_axis(at::arange(depth, at::kLong), at, indices.dim() + 1);
    call.set(0, at::where(indices.unsqueeze(at) == classes, values[1], values[0]));
  };
}

}  // namespace

KernelInfo kernel_Cast() { return {.since = 6, .make = make_cast, .any_float = true}; }
KernelInfo kernel_CastLike() { return {.since = 15, .make = make_cast_like, .any_float = true}; }
KernelInfo kernel_Constant() { return {.since = 1, .make = make_constant, .any_float = true}; }
KernelInfo kernel_ConstantOfShape() {
  return {.since = 9, .make = make_constant_of_shape, .any_float = true};
}
KernelInfo kernel_Range() { return {.since = 11, .make = make_range}; }
KernelInfo kernel_EyeLike() { return {.since = 9, .make = make_eye_like, .any_float = true}; }
KernelInfo kernel_OneHot() { return {.since = 9, .make = make_one_hot, .any_float = true}; }

}  // namespace quench::exec
