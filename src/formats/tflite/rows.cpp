// SPDX-License-Identifier: Apache-2.0
// The table of TFLite's operators, put together from its families.
#include "formats/tflite/rows.h"

#include <algorithm>

#include "formats/row_table.h"

namespace quench::tflite {
namespace {

const formats::RowTable<OpRow, &OpRow::name>& table() {
  static const formats::RowTable<OpRow, &OpRow::name> rows = {
      layer_rows(), pool_rows(),   function_rows(), arithmetic_rows(), shape_rows(), slice_rows(),
      join_rows(),  reduce_rows(), image_rows(),    index_rows(),      norm_rows()};
  return rows;
}

}  // namespace

std::vector<OptionField> fields_of(const OpRow& row) {
  std::vector<OptionField> fields;
  std::string_view rest = row.options;
  while (!rest.empty()) {
    const std::string_view token = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(token.size() + 1, rest.size()));
    const std::size_t colon = token.find(':');
    OptionField field{.name = token.substr(0, colon), .type = token[colon + 1], .otherwise = {}};
    if (token.size() > colon + 3) field.otherwise = token.substr(colon + 3);
    fields.push_back(field);
  }
  return fields;
}

std::span<const OpRow* const> all_rows() { return table().all(); }

const OpRow* find_row(std::string_view name) { return table().find(name); }

}  // namespace quench::tflite
