// SPDX-License-Identifier: Apache-2.0
// The door to the images module, which brings OpenCV.
#pragma once

#include <string>

#include "data/pixels.h"
#include "quench/data.h"

namespace quench::data {

/// Decodes image files and prepares them as its options say. Safe from several threads.
class ImageReader {
 public:
  virtual ~ImageReader() = default;
  /// Throws Error(BadData) that names the file.
  virtual Image read(const std::string& path) const = 0;
};

/// The type of the module's entry point, `quench_make_image_reader`.
using MakeImageReader = ImageReader*(const ImageOptions& options, int channels);
inline constexpr const char* kMakeImageReader = "quench_make_image_reader";

}  // namespace quench::data
