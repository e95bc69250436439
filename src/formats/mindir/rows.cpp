// SPDX-License-Identifier: Apache-2.0
// The table of MindIR's operators, put together from its families.
#include "formats/mindir/rows.h"

#include "formats/row_table.h"

namespace quench::mindir {
namespace {

const formats::RowTable<OpRow, &OpRow::name>& table() {
  static const formats::RowTable<OpRow, &OpRow::name> rows = {
      layer_rows(), pool_rows(),   norm_rows(), function_rows(),
      shape_rows(), reduce_rows(), image_rows()};
  return rows;
}

}  // namespace

std::span<const OpRow* const> all_rows() { return table().all(); }

const OpRow* find_row(std::string_view name) { return table().find(name); }

}  // namespace quench::mindir
