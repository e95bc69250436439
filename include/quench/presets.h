// SPDX-License-Identifier: Apache-2.0
// How images are usually prepared, by name.
#pragma once

#include <span>
#include <string_view>

#include "quench/data.h"

namespace quench {

/// What --preset sets; flags of their own override it.
struct Preset {
  std::string_view name;
  std::string_view summary;
  ImageOptions image;
};
std::span<const Preset> all_presets();
/// Throws Error(Usage) with the nearest name.
const Preset& find_preset(std::string_view name);

}  // namespace quench
