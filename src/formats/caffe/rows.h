// SPDX-License-Identifier: Apache-2.0
// The table of Caffe's layers: one row each. Rows lie by family in rows_*.cpp.
#pragma once

#include <span>
#include <string_view>

namespace quench::caffe {

class Layer;

struct LayerRow {
  std::string_view type;  ///< "Convolution"
  void (*read)(Layer& layer) = nullptr;
};

/// The row of a type; null: not known.
const LayerRow* find_row(std::string_view type);
/// Every row, by type.
std::span<const LayerRow* const> all_rows();

/// The families; each is the content of one file.
std::span<const LayerRow> product_rows();
std::span<const LayerRow> pool_rows();
std::span<const LayerRow> function_rows();
std::span<const LayerRow> norm_rows();
std::span<const LayerRow> shape_rows();
std::span<const LayerRow> detection_rows();

}  // namespace quench::caffe
