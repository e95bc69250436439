// SPDX-License-Identifier: Apache-2.0
// What an image file says of itself, checked before a decoder allocates anything.
#pragma once

#include <cstddef>
#include <span>

#include "quench/data.h"

namespace quench::data {

/// The size in the header of a JPEG, PNG, BMP, WebP, PGM or PPM file. Throws Error(BadData) when
/// the file is of another kind, cut off, or claims more pixels than its bytes could hold.
ImageSize check_image(std::span<const std::byte> bytes);

}  // namespace quench::data
