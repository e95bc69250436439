// SPDX-License-Identifier: Apache-2.0
// What model inputs want, read from their declared types.
#include "data/column.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/format.h"
#include "formats/foreign.h"

namespace quench::data {
namespace {

bool same_count(const std::optional<std::vector<Dim>>& a,
                const std::optional<std::vector<Dim>>& b) {
  if (!a || !b) return true;
  if (a->empty() || b->empty()) return false;
  const Dim& first = a->front();
  const Dim& second = b->front();
  return first.known() == second.known() && (!first.known() || first.value == second.value);
}

std::optional<InputScale> scale_of(const Value& input) {
  const auto noted = foreign_of(input.foreign, kScaleOfInput);
  if (!noted) return std::nullopt;
  const std::string text(*noted);
  char* end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  return InputScale{.value = value, .zero = std::strtof(end, nullptr)};
}

template <class T>
Tensor rounded(const Tensor& numbers, const InputScale& scale, DType dtype) {
  constexpr float kLeast = std::numeric_limits<T>::min();
  constexpr float kMost = std::numeric_limits<T>::max();
  const std::vector<float> from = to_float(numbers);
  Tensor result = Tensor::zeros(dtype, numbers.shape());
  const auto to = result.mutable_data<T>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const float step = std::nearbyint(from[i] / scale.value) + scale.zero;
    to[i] = static_cast<T>(std::isnan(step) ? scale.zero : std::clamp(step, kLeast, kMost));
  }
  return result;
}

}  // namespace

Tensor in_type_of(const InputSpec& spec, const Tensor& numbers) {
  if (spec.dtype == DType::Undefined || spec.dtype == numbers.dtype()) return numbers;
  const bool real = info(numbers.dtype()).is_float;
  if (spec.scale && spec.dtype == DType::UInt8 && real) {
    return rounded<std::uint8_t>(numbers, *spec.scale, spec.dtype);
  }
  if (spec.scale && spec.dtype == DType::Int8 && (real || numbers.dtype() == DType::UInt8)) {
    return rounded<std::int8_t>(numbers, *spec.scale, spec.dtype);
  }
  return convert(numbers, spec.dtype);
}

std::vector<Dim> InputSpec::sample_dims() const {
  if (!dims) return {};
  return {dims->begin() + (batched ? 1 : 0), dims->end()};
}

std::string InputSpec::describe() const {
  return format("input '{}' {}", name, to_string(ValueType::tensor(dtype, dims)));
}

std::vector<InputSpec> describe_inputs(const std::vector<Value>& inputs) {
  std::vector<InputSpec> specs;
  for (const Value& input : inputs) {
    if (input.type.kind == ValueType::Kind::Other || input.type.dtype == DType::String) {
      fail(ErrorKind::Unsupported,
           "input '{}' is not a tensor of numbers; it cannot be fed from files", input.name);
    }
    specs.push_back({.name = input.name,
                     .dtype = input.type.dtype,
                     .dims = input.type.shape,
                     .scale = scale_of(input)});
  }
  const bool batched = std::all_of(specs.begin(), specs.end(), [&](const InputSpec& spec) {
    return (!spec.dims || !spec.dims->empty()) && same_count(spec.dims, specs.front().dims);
  });
  for (InputSpec& spec : specs) spec.batched = batched;
  return specs;
}

bool fits(const Shape& shape, const std::vector<Dim>& dims) {
  return std::equal(
      shape.begin(), shape.end(), dims.begin(), dims.end(),
      [](std::int64_t size, const Dim& dim) { return !dim.known() || dim.value == size; });
}

}  // namespace quench::data
