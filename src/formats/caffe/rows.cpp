// SPDX-License-Identifier: Apache-2.0
// The table of Caffe's layers, put together from its families.
#include "formats/caffe/rows.h"

#include "formats/row_table.h"

namespace quench::caffe {
namespace {

const formats::RowTable<LayerRow, &LayerRow::type>& table() {
  static const formats::RowTable<LayerRow, &LayerRow::type> rows = {
      product_rows(), pool_rows(), function_rows(), norm_rows(), shape_rows(), detection_rows()};
  return rows;
}

}  // namespace

std::span<const LayerRow* const> all_rows() { return table().all(); }

const LayerRow* find_row(std::string_view type) { return table().find(type); }

}  // namespace quench::caffe
