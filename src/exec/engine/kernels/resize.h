// SPDX-License-Identifier: Apache-2.0
// Where each output element of a resized axis takes its value from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quench::exec {

enum class ResizeMode { Nearest, Linear, Cubic };

/// What Resize's attributes say of every axis.
struct ResizeStyle {
  ResizeMode mode = ResizeMode::Nearest;
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// One axis to resize.
struct ResizeAxis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;
};

/// `taps` source elements with weights for each output element. An output element that lies
/// outside (tf_crop_and_resize) has `outside` set.
struct ResizeTable {
  std::int64_t taps = 1;
  std::vector<std::int64_t> index;
  std::vector<float> weight;
  std::vector<bool> outside;
  bool any_outside = false;
};

ResizeTable make_table(const ResizeAxis& axis, const ResizeStyle& style);

}  // namespace quench::exec
