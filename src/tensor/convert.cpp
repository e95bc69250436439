// SPDX-License-Identifier: Apache-2.0
// Element type conversion, for data and reports; the engine has its own.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "quench/tensor.h"
#include "tensor/half.h"

namespace quench {
namespace {

/// The i-th element of a packed 2- or 4-bit tensor.
int packed_element(const Tensor& tensor, std::size_t i) {
  const auto bits = static_cast<unsigned>(info(tensor.dtype()).bits);
  const auto per_byte = 8U / bits;
  const auto byte = std::to_integer<unsigned>(tensor.bytes()[i / per_byte]);
  const unsigned raw = (byte >> (bits * (i % per_byte))) & ((1U << bits) - 1U);
  const bool negative = info(tensor.dtype()).is_signed && (raw >> (bits - 1U)) != 0;
  return static_cast<int>(raw) - (negative ? 1 << bits : 0);
}

template <typename T>
std::vector<double> widen(const Tensor& tensor) {
  const auto data = tensor.data<T>();
  return {data.begin(), data.end()};
}

std::vector<double> widen_16_bit(const Tensor& tensor) {
  const auto* words = reinterpret_cast<const std::uint16_t*>(tensor.bytes().data());
  const bool half = tensor.dtype() == DType::Float16;
  std::vector<double> result(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = half ? half_to_float(words[i]) : bfloat16_to_float(words[i]);
  }
  return result;
}

std::vector<double> widen_packed(const Tensor& tensor) {
  std::vector<double> result(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = packed_element(tensor, i);
  return result;
}

std::vector<double> to_double(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return widen<float>(tensor);
    case DType::Float64:
      return widen<double>(tensor);
    case DType::Int8:
      return widen<std::int8_t>(tensor);
    case DType::UInt8:
      return widen<std::uint8_t>(tensor);
    case DType::Int16:
      return widen<std::int16_t>(tensor);
    case DType::UInt16:
      return widen<std::uint16_t>(tensor);
    case DType::Int32:
      return widen<std::int32_t>(tensor);
    case DType::UInt32:
      return widen<std::uint32_t>(tensor);
    case DType::Int64:
      return widen<std::int64_t>(tensor);
    case DType::UInt64:
      return widen<std::uint64_t>(tensor);
    case DType::Bool:
      return widen<bool>(tensor);
    case DType::Float16:
    case DType::BFloat16:
      return widen_16_bit(tensor);
    case DType::Int4:
    case DType::UInt4:
    case DType::Int2:
    case DType::UInt2:
      return widen_packed(tensor);
    default:
      fail(ErrorKind::Unsupported, "{} elements cannot be read as numbers",
           name_of(tensor.dtype()));
  }
}

template <typename T>
T saturate(double value) {
  if (std::isnan(value)) return T{0};
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::lowest());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::nearbyint(value);
  if (rounded <= kLow) return std::numeric_limits<T>::lowest();
  if (rounded >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

template <typename T>
Tensor narrow(const std::vector<double>& values, const Shape& shape) {
  Tensor result = Tensor::zeros(DTypeOf<T>::value, shape);
  auto data = result.mutable_data<T>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      data[i] = values[i] != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      data[i] = static_cast<T>(values[i]);
    } else {
      data[i] = saturate<T>(values[i]);
    }
  }
  return result;
}

Tensor narrow_16_bit(const std::vector<double>& values, const Shape& shape, DType dtype) {
  Tensor result = Tensor::zeros(dtype, shape);
  auto* words = reinterpret_cast<std::uint16_t*>(result.mutable_bytes().data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    words[i] = dtype == DType::Float16 ? float_to_half(value) : float_to_bfloat16(value);
  }
  return result;
}

bool is_packed(DType dtype) {
  const DTypeInfo& row = info(dtype);
  return row.bits > 0 && row.bits < 8 && !row.is_float;
}

DType byte_type(DType packed) { return info(packed).is_signed ? DType::Int8 : DType::UInt8; }

/// A byte an element, without the numbers in between that other conversions need: weights are
/// large.
Tensor unpacked(const Tensor& tensor) {
  Tensor result = Tensor::zeros(byte_type(tensor.dtype()), tensor.shape());
  const std::span<std::byte> bytes = result.mutable_bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(packed_element(tensor, i));
  }
  return result;
}

/// 16-bit floats as float32, likewise.
Tensor widened(const Tensor& tensor) {
  Tensor result = Tensor::zeros(DType::Float32, tensor.shape());
  const auto* words = reinterpret_cast<const std::uint16_t*>(tensor.bytes().data());
  const bool half = tensor.dtype() == DType::Float16;
  for (float& number : result.mutable_data<float>()) {
    number = half ? half_to_float(*words) : bfloat16_to_float(*words);
    ++words;
  }
  return result;
}

}  // namespace

std::vector<float> to_float(const Tensor& given) {
  const Tensor tensor = given.held();
  if (tensor.dtype() == DType::Float32) {
    const auto data = tensor.data<float>();
    return {data.begin(), data.end()};
  }
  const std::vector<double> wide = to_double(tensor);
  std::vector<float> result(wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) result[i] = static_cast<float>(wide[i]);
  return result;
}

Tensor convert(const Tensor& given, DType dtype) {
  if (given.dtype() == dtype) return given;
  const Tensor tensor = given.held();
  if (is_packed(tensor.dtype()) && dtype == byte_type(tensor.dtype())) return unpacked(tensor);
  const bool is_half = tensor.dtype() == DType::Float16 || tensor.dtype() == DType::BFloat16;
  if (is_half && dtype == DType::Float32) return widened(tensor);
  const std::vector<double> values = to_double(tensor);
  const Shape& shape = tensor.shape();
  switch (dtype) {
    case DType::Float32:
      return narrow<float>(values, shape);
    case DType::Float64:
      return narrow<double>(values, shape);
    case DType::Int8:
      return narrow<std::int8_t>(values, shape);
    case DType::UInt8:
      return narrow<std::uint8_t>(values, shape);
    case DType::Int16:
      return narrow<std::int16_t>(values, shape);
    case DType::UInt16:
      return narrow<std::uint16_t>(values, shape);
    case DType::Int32:
      return narrow<std::int32_t>(values, shape);
    case DType::UInt32:
      return narrow<std::uint32_t>(values, shape);
    case DType::Int64:
      return narrow<std::int64_t>(values, shape);
    case DType::UInt64:
      return narrow<std::uint64_t>(values, shape);
    case DType::Bool:
      return narrow<bool>(values, shape);
    case DType::Float16:
    case DType::BFloat16:
      return narrow_16_bit(values, shape, dtype);
    default:
      fail(ErrorKind::Unsupported, "numbers cannot be stored as {}", name_of(dtype));
  }
}

}  // namespace quench
