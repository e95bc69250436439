// SPDX-License-Identifier: Apache-2.0
// Files of class indices, by name or in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quench::data {

/// Labels of a file. `names` is empty when they stand in the order of the samples.
struct Labels {
  std::string path;
  std::vector<std::int64_t> indices;
  std::vector<std::string> names;

  bool by_name() const noexcept { return !names.empty(); }
};

/// Reads "name index" lines, a column of indices, an .npy array or an IDX file. Throws
/// Error(BadData) that names the file and the line.
Labels read_labels(const std::string& path);

}  // namespace quench::data
