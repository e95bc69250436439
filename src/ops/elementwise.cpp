// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element, with or without broadcasting.
#include <algorithm>
#include <functional>

#include "ops/context.h"

namespace quench::ops {
namespace {

/// The broadcast of inputs first..last; nothing when one of their ranks is unknown.
std::optional<Dims> broadcast_inputs(const InferContext& context, std::size_t first,
                                     std::size_t last) {
  Dims result;
  for (std::size_t i = first; i <= last; ++i) {
    const Dims* dims = context.shape(i);
    if (dims == nullptr) return std::nullopt;
    result = i == first ? *dims : broadcast(result, *dims);
  }
  return result;
}

/// Before opset 7 the second input was stretched to the first, so the first has the result's shape.
std::optional<Dims> binary_shape(const InferContext& context) {
  if (context.opset() >= 7) return broadcast_inputs(context, 0, 1);
  const Dims* dims = context.shape(0);
  return dims == nullptr ? std::nullopt : std::optional(*dims);
}

/// Applies `op` to the elements of two short integer inputs, of which one may be a single number.
void propagate(InferContext& context,
               const std::function<SymInt(const SymInt&, const SymInt&)>& op) {
  const SymInts* a = context.ints(0);
  const SymInts* b = context.ints(1);
  if (a == nullptr || b == nullptr || a->empty() || b->empty()) return;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return;
  SymInts result(std::max(a->size(), b->size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = op((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
  }
  context.set_ints(0, std::move(result));
}

SymInt divide(const SymInt& a, const SymInt& b) {
  if (a.known() && a == b && !a.is(0)) return 1;
  // ONNX truncates, floor_div rounds down: they agree on sizes, which are not negative.
  if (!b.number || *b.number <= 0 || (a.number && *a.number < 0)) return {};
  return floor_div(a, *b.number);
}

SymInt equal(const SymInt& a, const SymInt& b) {
  if (!a.known() || !b.known()) return {};
  if (a == b) return 1;
  if (a.number && b.number) return 0;
  // A symbol is a size: it cannot be the -1 that exporters compare shapes with.
  const SymInt& number = a.number ? a : b;
  return number.number && *number.number < 0 ? SymInt(0) : SymInt();
}

template <typename Pick>
SymInt pick(const SymInt& a, const SymInt& b, Pick choose) {
  if (a.known() && a == b) return a;
  return a.number && b.number ? SymInt(choose(*a.number, *b.number)) : SymInt();
}

void infer_arithmetic(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  const DType dtype = context.dtype(0) != DType::Undefined ? context.dtype(0) : context.dtype(1);
  context.set(0, dtype, binary_shape(context));
}

}  // namespace

void infer_same(InferContext& context) { context.set_like(0, 0); }

void infer_identity(InferContext& context) {
  context.set_like(0, 0);
  if (const SymInts* values = context.ints(0)) context.set_ints(0, *values);
  if (const Tensor* tensor = context.constant(0)) context.set_constant(0, *tensor);
}

void infer_binary(InferContext& context) { infer_arithmetic(context); }

void infer_add(InferContext& context) {
  infer_arithmetic(context);
  propagate(context, [](const SymInt& a, const SymInt& b) { return a + b; });
}

void infer_sub(InferContext& context) {
  infer_arithmetic(context);
  propagate(context, [](const SymInt& a, const SymInt& b) { return a - b; });
}

void infer_mul(InferContext& context) {
  infer_arithmetic(context);
  propagate(context, [](const SymInt& a, const SymInt& b) { return a * b; });
}

void infer_div(InferContext& context) {
  infer_arithmetic(context);
  propagate(context, divide);
}

/// The exponent, and what is shifted by or compared with nothing else, may have a type of its own.
void infer_pow(InferContext& context) { context.set(0, context.dtype(0), binary_shape(context)); }

void infer_prelu(InferContext& context) { context.set_like(0, 0); }

void infer_compare(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  context.set(0, DType::Bool, binary_shape(context));
}

void infer_equal(InferContext& context) {
  infer_compare(context);
  propagate(context, equal);
}

void infer_predicate(InferContext& context) {
  const Dims* dims = context.shape(0);
  context.set(0, DType::Bool, dims == nullptr ? std::nullopt : std::optional(*dims));
}

void infer_variadic(InferContext& context) {
  if (context.num_inputs() == 0) return;
  for (std::size_t i = 1; i < context.num_inputs(); ++i) expect_same_dtype(context, 0, i);
  context.set(0, context.dtype(0), broadcast_inputs(context, 0, context.num_inputs() - 1));
}

void infer_max(InferContext& context) {
  infer_variadic(context);
  if (context.num_inputs() != 2) return;
  propagate(context, [](const SymInt& a, const SymInt& b) {
    return pick(a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
  });
}

void infer_min(InferContext& context) {
  infer_variadic(context);
  if (context.num_inputs() != 2) return;
  propagate(context, [](const SymInt& a, const SymInt& b) {
    return pick(a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
  });
}

void infer_where(InferContext& context) {
  expect_same_dtype(context, 1, 2);
  context.set(0, context.dtype(1), broadcast_inputs(context, 0, 2));
  const SymInts* condition = context.ints(0);
  const SymInts* yes = context.ints(1);
  const SymInts* no = context.ints(2);
  if (condition == nullptr || yes == nullptr || no == nullptr) return;
  const std::size_t size = std::max({condition->size(), yes->size(), no->size()});
  const auto fits = [size](const SymInts& list) { return list.size() == size || list.size() == 1; };
  if (!fits(*condition) || !fits(*yes) || !fits(*no)) return;
  const auto at = [](const SymInts& list, std::size_t i) { return list[list.size() == 1 ? 0 : i]; };
  SymInts result(size);
  for (std::size_t i = 0; i < size; ++i) {
    const SymInt which = at(*condition, i);
    if (which.number) result[i] = at(*which.number != 0 ? *yes : *no, i);
  }
  context.set_ints(0, std::move(result));
}

void infer_cast(InferContext& context) {
  const auto dtype = static_cast<DType>(context.node().get_int("to", 0));
  const Dims* dims = context.shape(0);
  context.set(0, dtype, dims == nullptr ? std::nullopt : std::optional(*dims));
  const bool integer = dtype == DType::Int64 || dtype == DType::Int32 || dtype == DType::Bool;
  const SymInts* values = context.ints(0);
  if (values == nullptr || !integer) return;
  SymInts result = *values;
  if (dtype == DType::Bool) {
    for (SymInt& value : result)
      value = value.number ? SymInt(*value.number != 0 ? 1 : 0) : SymInt();
  }
  context.set_ints(0, std::move(result));
}

void infer_cast_like(InferContext& context) {
  const Dims* dims = context.shape(0);
  context.set(0, context.dtype(1), dims == nullptr ? std::nullopt : std::optional(*dims));
}

void infer_softmax(InferContext& context) {
  if (const Dims* dims = context.shape(0)) {
    const std::int64_t axis = context.node().get_int("axis", context.opset() >= 13 ? -1 : 1);
    // Before opset 13 the axis split the shape in two, so it could be the rank itself.
    const bool at_end = context.opset() < 13 && axis == static_cast<std::int64_t>(dims->size());
    if (!at_end && !dims->empty()) checked_axis(axis, dims->size());
  }
  context.set_like(0, 0);
}

}  // namespace quench::ops
