// SPDX-License-Identifier: Apache-2.0
// Constants of a graph: bytes, or numbers of which the last stands for all that are left out.
#include <array>
#include <cstring>

#include "base/format.h"
#include "formats/tensorflow/graph.h"

namespace quench::tensorflow {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;
constexpr std::size_t kMaxRank = 8;

Shape shape_of(const wire::TensorShape& given) {
  Shape shape;
  for (const wire::Dim& dim : given.dim()) shape.push_back(dim.size());
  const auto count = num_elements(shape);
  if (!count || *count > kMaxElements || shape.size() > kMaxRank) {
    fail(ErrorKind::BadModel, "a constant has the shape {}", to_string(shape));
  }
  return shape;
}

template <typename T, typename List>
Tensor repeated(const Shape& shape, const List& list) {
  const auto count = num_elements(shape).value_or(0);
  // A last number that stands for many must not make a small file a large tensor.
  constexpr std::int64_t kMost = std::int64_t{1} << 22;
  if (list.size() > count || (count > kMost && list.size() < count / 2)) {
    fail(ErrorKind::BadModel, "a constant of {} elements has {} numbers", count, list.size());
  }
  Tensor result = Tensor::zeros(DTypeOf<T>::value, shape);
  // None at all stand for zeros.
  if (list.size() == 0) return result;
  const auto to = result.template mutable_data<T>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<T>(list[std::min(static_cast<int>(i), list.size() - 1)]);
  }
  return result;
}

/// Bits of half-precision numbers, each in an integer.
Tensor halves(const Shape& shape, const wire::TensorData& data, DType dtype) {
  const Tensor bits = repeated<std::uint16_t>(shape, data.half_val());
  Tensor result = Tensor::zeros(dtype, shape);
  std::memcpy(result.mutable_bytes().data(), bits.bytes().data(), bits.bytes().size());
  return result;
}

Tensor from_numbers(const wire::TensorData& data, DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::Float32:
      return repeated<float>(shape, data.float_val());
    case DType::Float64:
      return repeated<double>(shape, data.double_val());
    case DType::Int32:
      return repeated<std::int32_t>(shape, data.int_val());
    case DType::UInt8:
      return repeated<std::uint8_t>(shape, data.int_val());
    case DType::Int8:
      return repeated<std::int8_t>(shape, data.int_val());
    case DType::Int16:
      return repeated<std::int16_t>(shape, data.int_val());
    case DType::Int64:
      return repeated<std::int64_t>(shape, data.int64_val());
    case DType::Bool:
      return repeated<bool>(shape, data.bool_val());
    case DType::Float16:
    case DType::BFloat16:
      return halves(shape, data, dtype);
    default:
      fail(ErrorKind::Unsupported, "constants of element type {} are not read", name_of(dtype));
  }
}

}  // namespace

DType dtype_of(int number) noexcept {
  constexpr auto kTypes = std::to_array<DType>(
      {DType::Undefined, DType::Float32,   DType::Float64,   DType::Int32,      DType::UInt8,
       DType::Int16,     DType::Int8,      DType::String,    DType::Complex64,  DType::Int64,
       DType::Bool,      DType::Undefined, DType::Undefined, DType::Undefined,  DType::BFloat16,
       DType::Undefined, DType::Undefined, DType::UInt16,    DType::Complex128, DType::Float16,
       DType::Undefined, DType::Undefined, DType::UInt32,    DType::UInt64});
  if (number < 0 || number >= std::ssize(kTypes)) return DType::Undefined;
  return kTypes[static_cast<std::size_t>(number)];
}

Tensor tensor_of(const wire::TensorData& data) {
  const DType dtype = dtype_of(data.dtype());
  const Shape shape = shape_of(data.tensor_shape());
  const std::string& content = data.tensor_content();
  if (content.empty()) return from_numbers(data, dtype, shape);
  const auto bytes = num_bytes(dtype, num_elements(shape).value_or(0));
  if (!bytes || *bytes != content.size()) {
    fail(ErrorKind::BadModel, "a constant of type {} and shape {} has {} bytes", name_of(dtype),
         to_string(shape), content.size());
  }
  Tensor result = Tensor::zeros(dtype, shape);
  std::memcpy(result.mutable_bytes().data(), content.data(), content.size());
  return result;
}

}  // namespace quench::tensorflow
