// SPDX-License-Identifier: Apache-2.0
// IDX files, the format of MNIST and its relatives, plain or gzipped.
#pragma once

#include <string>

#include "quench/tensor.h"

namespace quench::data {

/// Whether the file, unpacked if it is gzipped, starts as an IDX file does.
bool is_idx(const std::string& path);
/// Throws Error(BadData) that names the file.
Tensor read_idx(const std::string& path);
/// The file of labels that lies beside a file of images under the usual name, or "".
std::string find_idx_labels(const std::string& images_path);

}  // namespace quench::data
