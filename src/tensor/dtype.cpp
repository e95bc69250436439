// SPDX-License-Identifier: Apache-2.0
// The type table: the one place that knows names and widths.
#include "quench/dtype.h"

#include <array>
#include <limits>

namespace quench {
namespace {

using enum DType;

constexpr std::array<DTypeInfo, 27> kTable = {{
    {Undefined, "undefined", "", 0, false, false},
    {Float32, "float32", "<f4", 32, true, true},
    {UInt8, "uint8", "|u1", 8, false, false},
    {Int8, "int8", "|i1", 8, false, true},
    {UInt16, "uint16", "<u2", 16, false, false},
    {Int16, "int16", "<i2", 16, false, true},
    {Int32, "int32", "<i4", 32, false, true},
    {Int64, "int64", "<i8", 64, false, true},
    {String, "string", "", 0, false, false},
    {Bool, "bool", "|b1", 8, false, false},
    {Float16, "float16", "<f2", 16, true, true},
    {Float64, "float64", "<f8", 64, true, true},
    {UInt32, "uint32", "<u4", 32, false, false},
    {UInt64, "uint64", "<u8", 64, false, false},
    {Complex64, "complex64", "<c8", 64, false, true},
    {Complex128, "complex128", "<c16", 128, false, true},
    {BFloat16, "bfloat16", "", 16, true, true},
    {Float8E4M3FN, "float8e4m3fn", "", 8, true, true},
    {Float8E4M3FNUZ, "float8e4m3fnuz", "", 8, true, true},
    {Float8E5M2, "float8e5m2", "", 8, true, true},
    {Float8E5M2FNUZ, "float8e5m2fnuz", "", 8, true, true},
    {UInt4, "uint4", "", 4, false, false},
    {Int4, "int4", "", 4, false, true},
    {Float4E2M1, "float4e2m1", "", 4, true, true},
    {Float8E8M0, "float8e8m0", "", 8, true, false},
    {UInt2, "uint2", "", 2, false, false},
    {Int2, "int2", "", 2, false, true},
}};

}  // namespace

const DTypeInfo& info(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < kTable.size() ? kTable[index] : kTable[0];
}

std::span<const DTypeInfo> all_dtypes() noexcept { return std::span(kTable).subspan(1); }

DType dtype_from_name(std::string_view name) noexcept {
  for (const DTypeInfo& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return Undefined;
}

std::optional<std::int64_t> num_elements(std::span<const std::int64_t> shape) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

std::optional<std::size_t> num_bytes(DType dtype, std::int64_t count) noexcept {
  const int bits = info(dtype).bits;
  std::int64_t total = 0;
  if (bits == 0 || count < 0 || __builtin_mul_overflow(count, bits, &total) ||
      total > std::numeric_limits<std::int64_t>::max() - 7) {
    return std::nullopt;
  }
  return static_cast<std::size_t>((total + 7) / 8);
}

std::string to_string(std::span<const std::int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const std::int64_t dim : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(dim);
  }
  return text;
}

}  // namespace quench
