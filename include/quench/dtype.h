// SPDX-License-Identifier: Apache-2.0
// Element types and shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// Element types, numbered as ONNX numbers them.
enum class DType : std::int32_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
};

/// One row of the type table.
struct DTypeInfo {
  DType dtype;
  std::string_view name;   ///< "float32"
  std::string_view numpy;  ///< "<f4", empty where NumPy has no such type
  int bits;                ///< bits an element takes in storage; 0 for strings
  bool is_float;
  bool is_signed;
};

/// The row of a type; an unknown number gives the row of Undefined.
const DTypeInfo& info(DType dtype) noexcept;
/// Every row, in ONNX order.
std::span<const DTypeInfo> all_dtypes() noexcept;
/// The type called `name`, or Undefined.
DType dtype_from_name(std::string_view name) noexcept;
inline std::string_view name_of(DType dtype) noexcept { return info(dtype).name; }

using Shape = std::vector<std::int64_t>;

/// Product of the dimensions; nothing when one is negative or the product overflows.
std::optional<std::int64_t> num_elements(std::span<const std::int64_t> shape) noexcept;
/// Bytes that `count` packed elements take; nothing on overflow or for strings.
std::optional<std::size_t> num_bytes(DType dtype, std::int64_t count) noexcept;
/// "2x3x224x224", or "scalar".
std::string to_string(std::span<const std::int64_t> shape);

template <DType kDType>
struct DTypeConstant {
  static constexpr DType value = kDType;
};
/// The element type that holds a C++ type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> : DTypeConstant<DType::Float32> {};
template <>
struct DTypeOf<double> : DTypeConstant<DType::Float64> {};
template <>
struct DTypeOf<std::int8_t> : DTypeConstant<DType::Int8> {};
template <>
struct DTypeOf<std::uint8_t> : DTypeConstant<DType::UInt8> {};
template <>
struct DTypeOf<std::int16_t> : DTypeConstant<DType::Int16> {};
template <>
struct DTypeOf<std::uint16_t> : DTypeConstant<DType::UInt16> {};
template <>
struct DTypeOf<std::int32_t> : DTypeConstant<DType::Int32> {};
template <>
struct DTypeOf<std::uint32_t> : DTypeConstant<DType::UInt32> {};
template <>
struct DTypeOf<std::int64_t> : DTypeConstant<DType::Int64> {};
template <>
struct DTypeOf<std::uint64_t> : DTypeConstant<DType::UInt64> {};
template <>
struct DTypeOf<bool> : DTypeConstant<DType::Bool> {};

}  // namespace quench
