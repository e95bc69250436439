// SPDX-License-Identifier: Apache-2.0
// Element types: their numbers in programs and parameter files, and their names in PIR.
#pragma once

#include <cstdint>
#include <string_view>

#include "quench/dtype.h"

namespace quench::paddle {

struct TypeRow {
  std::int32_t number;  ///< VarType.Type
  DType dtype;
  std::string_view name;      ///< "float32", as attributes of PIR say it
  std::string_view pir_type;  ///< "t_f32"
};

/// The row of a number, of our type or of one of PIR's names; null: not known.
const TypeRow* type_row(std::int32_t number) noexcept;
const TypeRow* type_row(DType dtype) noexcept;
const TypeRow* type_row(std::string_view pir) noexcept;

/// Our type for a number; throws Error(Unsupported) that names the number.
DType dtype_of(std::int32_t number);

}  // namespace quench::paddle
