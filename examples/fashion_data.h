// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST in memory, prepared as the network wants it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fashion {

inline constexpr std::int64_t kSide = 28;
inline constexpr std::int64_t kPixels = kSide * kSide;
inline constexpr std::int64_t kClasses = 10;
/// Mean and standard deviation of the training pixels on the 0..255 scale, rounded: what
/// `quench eval --mean 72.9 --std 90` says.
inline constexpr double kMean = 72.9;
inline constexpr double kStd = 90.0;

/// Normalised images, one after the other, and their classes.
struct Images {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// Reads `<folder>/<set>-images-idx3-ubyte.gz` and its labels; `limit` 0 means all.
Images read_images(const std::string& folder, const std::string& set, std::int64_t limit);

/// Copies image `index`, moved and mirrored, to `dst`; what comes in from outside is background.
void copy_moved(const Images& images, std::int64_t index, int down, int right, bool mirrored,
                float* dst);

}  // namespace fashion
