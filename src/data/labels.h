// SPDX-License-Identifier: Apache-2.0
// Files of labels, by name or in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/boxes.h"
#include "quench/truth.h"

namespace quench::data {

/// Labels of a file. `names` is empty when they stand in the order of the samples.
struct Labels {
  std::string path;
  std::vector<std::int64_t> indices;  ///< classes; places in what follows, where there is any
  std::vector<std::string> names;
  bool names_more = false;               ///< than a folder needs to have
  std::shared_ptr<const Truths> truths;  ///< texts and arrays
  std::shared_ptr<const BoxList> boxes;  ///< of images, which say where they come to lie

  bool by_name() const noexcept { return !names.empty(); }
};

/// Reads class indices ("name index" lines, a column of indices, an .npy array or an IDX file),
/// boxes (COCO's .json, lines of "name x1,y1,x2,y2,class ...", an .npy of [N,count,5]), masks (an
/// .npy of whole numbers [N,H,W]) or, where there is a file of characters, texts. Throws
/// Error(BadData) that names the file and the line.
Labels read_labels(const std::string& path, const std::string& characters = "");

}  // namespace quench::data
