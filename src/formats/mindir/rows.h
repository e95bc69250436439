// SPDX-License-Identifier: Apache-2.0
// The table of MindIR's operators: one row each says how it is read. Rows lie by family in
// rows_*.cpp.
#pragma once

#include <span>
#include <string_view>

namespace quench::mindir {

class Op;

/// One operator.
struct OpRow {
  std::string_view name;  ///< "Conv2D"
  void (*read)(Op& op);
  std::string_view as = {};  ///< ONNX's name of the same, where the row is one of many
};

/// The row of an operator; null: not known.
const OpRow* find_row(std::string_view name);
/// Every row, by name.
std::span<const OpRow* const> all_rows();

/// The families; each is the content of one file.
std::span<const OpRow> layer_rows();
std::span<const OpRow> pool_rows();
std::span<const OpRow> norm_rows();
std::span<const OpRow> function_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> image_rows();

}  // namespace quench::mindir
