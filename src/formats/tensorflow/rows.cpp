// SPDX-License-Identifier: Apache-2.0
// The table of TensorFlow's operators, put together from its families.
#include "formats/tensorflow/rows.h"

#include "formats/row_table.h"

namespace quench::tensorflow {
namespace {

const formats::RowTable<OpRow, &OpRow::name>& table() {
  static const formats::RowTable<OpRow, &OpRow::name> rows = {
      layer_rows(), function_rows(), shape_rows(), slice_rows(), reduce_rows(), quant_rows()};
  return rows;
}

}  // namespace

std::span<const OpRow* const> all_rows() { return table().all(); }

const OpRow* find_row(std::string_view name) { return table().find(name); }

}  // namespace quench::tensorflow
