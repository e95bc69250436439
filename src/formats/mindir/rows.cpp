// SPDX-License-Identifier: Apache-2.0
// The table of MindIR's operators, put together from its families.
#include "formats/mindir/rows.h"

#include <algorithm>
#include <vector>

namespace quench::mindir {
namespace {

std::vector<const OpRow*> collect() {
  std::vector<const OpRow*> rows;
  for (const auto family : {layer_rows(), pool_rows(), norm_rows(), function_rows(), shape_rows(),
                            reduce_rows(), image_rows()}) {
    for (const OpRow& row : family) rows.push_back(&row);
  }
  std::ranges::sort(rows, {}, &OpRow::name);
  return rows;
}

}  // namespace

std::span<const OpRow* const> all_rows() {
  static const std::vector<const OpRow*> rows = collect();
  return rows;
}

const OpRow* find_row(std::string_view name) {
  const auto rows = all_rows();
  const auto found = std::ranges::lower_bound(rows, name, {}, &OpRow::name);
  return found == rows.end() || (*found)->name != name ? nullptr : *found;
}

}  // namespace quench::mindir
