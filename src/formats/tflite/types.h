// SPDX-License-Identifier: Apache-2.0
// TFLite's numbers: of element types and of operators.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quench/dtype.h"

namespace quench::tflite {

/// The element type of a number; Undefined where Quench has none.
DType dtype_of(int number) noexcept;
/// What TFLite calls it, or "type 99".
std::string type_name(int number);
/// The number of an element type; nothing where TFLite has none.
std::optional<int> type_number(DType dtype) noexcept;

/// What TFLite calls an operator, or "operator 999".
std::string operator_name(int code);
/// Its number, or -1.
int operator_code(std::string_view name) noexcept;
inline constexpr int kCustom = 32;  ///< the number of operators that have a name in place of one

}  // namespace quench::tflite
