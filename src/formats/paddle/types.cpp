// SPDX-License-Identifier: Apache-2.0
// Element types: their numbers in programs and parameter files, and their names in PIR.
#include "formats/paddle/types.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace quench::paddle {
namespace {

constexpr auto kTypes = std::to_array<TypeRow>({
    {0, DType::Bool, "bool", "t_bool"},
    {1, DType::Int16, "int16", "t_i16"},
    {2, DType::Int32, "int32", "t_i32"},
    {3, DType::Int64, "int64", "t_i64"},
    {4, DType::Float16, "float16", "t_f16"},
    {5, DType::Float32, "float32", "t_f32"},
    {6, DType::Float64, "float64", "t_f64"},
    {20, DType::UInt8, "uint8", "t_ui8"},
    {21, DType::Int8, "int8", "t_i8"},
    {22, DType::BFloat16, "bfloat16", "t_bf16"},
    {23, DType::Complex64, "complex64", "t_c64"},
    {24, DType::Complex128, "complex128", "t_c128"},
    {32, DType::Float8E4M3FN, "float8_e4m3fn", "t_f8e4m3fn"},
    {33, DType::Float8E5M2, "float8_e5m2", "t_f8e5m2"},
});

template <typename Same>
const TypeRow* find(Same same) noexcept {
  const auto* found = std::ranges::find_if(kTypes, same);
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace

const TypeRow* type_row(std::int32_t number) noexcept {
  return find([=](const TypeRow& row) { return row.number == number; });
}

const TypeRow* type_row(DType dtype) noexcept {
  return find([=](const TypeRow& row) { return row.dtype == dtype; });
}

const TypeRow* type_row(std::string_view pir) noexcept {
  return find([=](const TypeRow& row) { return row.name == pir || row.pir_type == pir; });
}

DType dtype_of(std::int32_t number) {
  const TypeRow* row = type_row(number);
  if (row == nullptr) {
    fail(ErrorKind::Unsupported, "its element type has the number {}, which is not known", number);
  }
  return row->dtype;
}

}  // namespace quench::paddle
