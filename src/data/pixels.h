// SPDX-License-Identifier: Apache-2.0
// Pixels between decoding and the tensor: the image, its normalisation, the check of its options.
#pragma once

#include <array>
#include <vector>

#include "quench/data.h"

namespace quench::data {

/// Decoded and prepared pixels: rows of interleaved channels.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<float> pixels;
};

/// An image may not decode to, or be resized to, more pixels than this.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

/// (x - mean) / std for every 8-bit value, one table a channel.
using NormalizeTable = std::vector<std::array<float, 256>>;
NormalizeTable normalize_table(const ImageOptions& options, int channels);

/// Throws Error(Usage) for sizes, means and deviations that make no sense.
void check_image_options(const ImageOptions& options);
/// Throws Error(Usage) unless mean and std have one value, or one for each channel.
void check_channel_options(const ImageOptions& options, int channels);
/// The size of an image after resizing, before it is cropped or padded. Throws Error(BadData) where
/// it would be too large.
ImageSize resized(const ImageOptions& options, ImageSize size);
/// Whether any option changes the size of an image.
bool resizes(const ImageOptions& options);

}  // namespace quench::data
