// SPDX-License-Identifier: Apache-2.0
// Boxes that people drew into images, and where they lie after an image was prepared.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quench/truth.h"

namespace quench::data {

/// x1, y1, x2, y2 and class, in pixels of the image file.
using LabelBox = std::array<double, 5>;

struct ImageBoxes {
  std::vector<LabelBox> boxes;
  ImageSize size;  ///< of the image, where the labels say so
};
using BoxList = std::vector<ImageBoxes>;

/// The file of the image that entry `index` of a list of boxes belongs to.
using ImageFile = std::function<std::string(std::int64_t index)>;
/// Boxes in pixels of the prepared images.
std::shared_ptr<const Truths> place_boxes(std::string path, std::shared_ptr<const BoxList> boxes,
                                          const ImageOptions& image, ImageFile file);
/// The boxes of one image after it was resized and cropped; those that were cut away are left out.
Truth placed(const ImageBoxes& image, ImageSize size, const ImageOptions& options);

}  // namespace quench::data
