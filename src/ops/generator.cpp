// SPDX-License-Identifier: Apache-2.0
// Operators that make values from attributes or from a wanted shape.
#include <algorithm>
#include <cmath>

#include "ops/context.h"

namespace quench::ops {
namespace {

std::optional<Dims> copy(const Dims* dims) {
  return dims == nullptr ? std::nullopt : std::optional(*dims);
}

DType dtype_or(const InferContext& context, DType otherwise) {
  const std::int64_t number = context.node().get_int("dtype", 0);
  return number == 0 ? otherwise : static_cast<DType>(number);
}

Dims vector_of(std::size_t size) { return Dims{Dim{static_cast<std::int64_t>(size), {}}}; }

std::optional<double> scalar_of(const InferContext& context, std::size_t index) {
  const Tensor* tensor = context.constant(index);
  if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
  switch (tensor->dtype()) {
    case DType::Float32:
      return static_cast<double>(tensor->data<float>()[0]);
    case DType::Float64:
      return tensor->data<double>()[0];
    default:
      return std::nullopt;
  }
}

/// The length of a Range over floating-point numbers.
Dim float_range(const InferContext& context) {
  const auto start = scalar_of(context, 0);
  const auto limit = scalar_of(context, 1);
  const auto delta = scalar_of(context, 2);
  if (!start || !limit || !delta || *delta == 0) return {};
  const double count = std::ceil((*limit - *start) / *delta);
  if (!(count < 9.0e18)) return {};
  return Dim{static_cast<std::int64_t>(std::max(count, 0.0)), {}};
}

Dim int_range(const SymInt& start, const SymInt& limit, const SymInt& delta) {
  if (!delta.number || *delta.number == 0) return {};
  const SymInt span = *delta.number > 0 ? limit - start : start - limit;
  const SymInt step = *delta.number > 0 ? delta : SymInt(0) - delta;
  if (!step.number) return {};
  if (span.number && *span.number <= 0) return Dim{0, {}};
  return ceil_div(span, *step.number).dim();
}

}  // namespace

void infer_constant(InferContext& context) {
  const Node& node = context.node();
  if (const auto* tensor = node.get<Tensor>("value")) {
    context.set(0, ValueType::of(*tensor));
    context.set_constant(0, *tensor);
  } else if (const auto* number = node.get<std::int64_t>("value_int")) {
    context.set(0, DType::Int64, Dims{});
    context.set_ints(0, {*number});
  } else if (const auto* list = node.get<std::vector<std::int64_t>>("value_ints")) {
    context.set(0, DType::Int64, vector_of(list->size()));
    context.set_ints(0, SymInts(list->begin(), list->end()));
  } else if (node.get<float>("value_float") != nullptr) {
    context.set(0, DType::Float32, Dims{});
  } else if (const auto* floats = node.get<std::vector<float>>("value_floats")) {
    context.set(0, DType::Float32, vector_of(floats->size()));
  } else if (node.get<std::string>("value_string") != nullptr) {
    context.set(0, DType::String, Dims{});
  } else if (const auto* strings = node.get<std::vector<std::string>>("value_strings")) {
    context.set(0, DType::String, vector_of(strings->size()));
  }
}

void infer_constant_of_shape(InferContext& context) {
  const auto* value = context.node().get<Tensor>("value");
  const DType dtype = value == nullptr ? DType::Float32 : value->dtype();
  const SymInts* wanted = context.ints(0);
  context.set(0, dtype, std::nullopt);
  if (wanted == nullptr) {
    const Dims* dims = context.shape(0);
    if (dims != nullptr && dims->size() == 1 && dims->front().known() &&
        dims->front().value <= 64) {
      context.set(0, dtype, unknown_dims(static_cast<std::size_t>(dims->front().value)));
    }
    return;
  }
  for (const SymInt& size : *wanted) {
    if (size.number && *size.number < 0) {
      fail(ErrorKind::BadModel, "the wanted shape holds {}", *size.number);
    }
  }
  context.set(0, dtype, to_dims(*wanted));
  // Exporters build the shape of an Expand this way.
  if (value != nullptr && dtype == DType::Int64 && value->size() == 1 && wanted->size() == 1 &&
      wanted->front().number && *wanted->front().number <= 64) {
    context.set_ints(0, SymInts(static_cast<std::size_t>(*wanted->front().number),
                                SymInt(value->data<std::int64_t>()[0])));
  }
}

void infer_range(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  expect_same_dtype(context, 0, 2);
  const SymInts* start = context.ints(0);
  const SymInts* limit = context.ints(1);
  const SymInts* delta = context.ints(2);
  Dim size;
  if (start != nullptr && limit != nullptr && delta != nullptr && start->size() == 1 &&
      limit->size() == 1 && delta->size() == 1) {
    size = int_range(start->front(), limit->front(), delta->front());
  } else {
    size = float_range(context);
  }
  context.set(0, context.dtype(0), Dims{size});
}

void infer_random(InferContext& context) {
  const auto shape = context.node().get_ints("shape");
  for (const std::int64_t size : shape) {
    if (size < 0) fail(ErrorKind::BadModel, "shape holds {}", size);
  }
  context.set(0, dtype_or(context, DType::Float32), to_dims(shape));
}

/// RandomNormalLike, Bernoulli, EyeLike: the shape of the input, and its type unless dtype is
/// given.
void infer_like(InferContext& context) {
  context.set(0, dtype_or(context, context.dtype(0)), copy(context.shape(0)));
}

void infer_multinomial(InferContext& context) {
  expect_rank(context, 0, 2);
  const Dims* input = context.shape(0);
  context.set(0, dtype_or(context, DType::Int32),
              Dims{input == nullptr ? Dim{} : input->front(),
                   SymInt(context.node().get_int("sample_size", 1)).dim()});
}

/// HannWindow and its like.
void infer_window(InferContext& context) {
  const std::int64_t dtype = context.node().get_int("output_datatype", 1);
  const SymInts* size = context.ints(0);
  context.set(0, static_cast<DType>(dtype),
              Dims{size == nullptr || size->empty() ? Dim{} : size->front().dim()});
}

void infer_mel_weights(InferContext& context) {
  const std::int64_t dtype = context.node().get_int("output_datatype", 1);
  const SymInts* bins = context.ints(0);
  const SymInts* length = context.ints(1);
  Dims result = unknown_dims(2);
  if (length != nullptr && !length->empty()) {
    result[0] = (floor_div(length->front(), 2) + SymInt(1)).dim();
  }
  if (bins != nullptr && !bins->empty()) result[1] = bins->front().dim();
  context.set(0, static_cast<DType>(dtype), std::move(result));
}

}  // namespace quench::ops
