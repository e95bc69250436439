// SPDX-License-Identifier: Apache-2.0
// The table of Caffe's layers, put together from its families.
#include "formats/caffe/rows.h"

#include <algorithm>
#include <vector>

namespace quench::caffe {
namespace {

std::vector<const LayerRow*> collect() {
  std::vector<const LayerRow*> rows;
  for (const auto family : {product_rows(), pool_rows(), function_rows(), norm_rows(), shape_rows(),
                            detection_rows()}) {
    for (const LayerRow& row : family) rows.push_back(&row);
  }
  std::ranges::sort(rows, {}, &LayerRow::type);
  return rows;
}

}  // namespace

std::span<const LayerRow* const> all_rows() {
  static const std::vector<const LayerRow*> rows = collect();
  return rows;
}

const LayerRow* find_row(std::string_view type) {
  const auto rows = all_rows();
  const auto found = std::ranges::lower_bound(rows, type, {}, &LayerRow::type);
  return found == rows.end() || (*found)->type != type ? nullptr : *found;
}

}  // namespace quench::caffe
