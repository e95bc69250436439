// SPDX-License-Identifier: Apache-2.0
// The table of TFLite's operators: one row each says which numbers its options hold and how it is
// read. Rows lie by family in rows_*.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace quench::tflite {

class Op;

/// One operator.
struct OpRow {
  std::string_view name;  ///< "CONV_2D"; of a custom operator its own
  int options_type = 0;   ///< the number of its table of options in the union of all; 0: none
  /// The table's fields in the order of their slots, each with a type (b byte, t bool, i int,
  /// f float, v vector of int) and what holds where the file leaves it out: "stride:i scale:f=1".
  std::string_view options;
  void (*read)(Op& op) = nullptr;
  bool custom = false;
};

/// A field of a row's options.
struct OptionField {
  std::string_view name;
  char type = 'i';
  std::string_view otherwise;  ///< "": zero
};
std::vector<OptionField> fields_of(const OpRow& row);

/// The row of an operator; null: not known.
const OpRow* find_row(std::string_view name);
/// Every row, by name.
std::span<const OpRow* const> all_rows();

/// The families; each is the content of one file.
std::span<const OpRow> layer_rows();
std::span<const OpRow> pool_rows();
std::span<const OpRow> function_rows();
std::span<const OpRow> arithmetic_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> slice_rows();
std::span<const OpRow> join_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> image_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> norm_rows();

}  // namespace quench::tflite
