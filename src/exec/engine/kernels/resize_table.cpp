// SPDX-License-Identifier: Apache-2.0
// Where each output element of a resized axis takes its value from.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "exec/engine/kernels/resize.h"

namespace quench::exec {
namespace {

/// Far beyond any image; a few numbers in a file can ask for any size.
constexpr double kMaxEntries = 1 << 26;

/// The place in the input that an output element stands for.
double source_place(std::int64_t x, const ResizeAxis& axis, const ResizeStyle& style) {
  const auto at = static_cast<double>(x);
  const auto in = static_cast<double>(axis.in);
  const auto out = static_cast<double>(axis.out);
  const std::string& how = style.coordinates;
  if (how == "asymmetric") return at / axis.scale;
  if (how == "align_corners") {
    // ONNX takes the length before it is rounded down.
    const double length = axis.scale * in;
    return axis.out == 1 ? 0 : at * (in - 1) / (length - 1);
  }
  if (how == "pytorch_half_pixel") return axis.out > 1 ? (at + 0.5) / axis.scale - 0.5 : 0;
  if (how == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (how == "half_pixel_symmetric") {
    // The length may have been rounded: keep the centre where it is.
    const double adjustment = out / (axis.scale * in);
    const double centre = in / 2;
    return centre * (1 - adjustment) + (at + 0.5) / axis.scale - 0.5;
  }
  if (how == "tf_crop_and_resize") {
    if (axis.out == 1) return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
    return axis.roi_start * (in - 1) + at * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
  }
  return (at + 0.5) / axis.scale - 0.5;
}

std::int64_t nearest_element(double place, const std::string& how) {
  const double below = std::floor(place);
  double chosen = below;
  if (how == "ceil") {
    chosen = std::ceil(place);
  } else if (how == "round_prefer_floor") {
    chosen = place - below <= 0.5 ? below : below + 1;
  } else if (how == "round_prefer_ceil") {
    chosen = place - below < 0.5 ? below : below + 1;
  }
  return static_cast<std::int64_t>(chosen);
}

/// The weight of an element at a distance from the place that is asked for.
double kernel_weight(double distance, const ResizeStyle& style) {
  const double d = std::abs(distance);
  if (style.mode == ResizeMode::Linear) return std::max(1 - d, 0.0);
  const double a = style.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

/// Weights must sum to one after elements outside were left out or the kernel was stretched.
void normalise(float* weight, std::int64_t taps) {
  double sum = 0;
  for (std::int64_t i = 0; i < taps; ++i) sum += weight[i];
  if (sum == 0) return;
  for (std::int64_t i = 0; i < taps; ++i) weight[i] = static_cast<float>(weight[i] / sum);
}

void fill_nearest(const ResizeAxis& axis, const ResizeStyle& style, std::int64_t x, double place,
                  ResizeTable& table) {
  table.weight[static_cast<std::size_t>(x)] = 1;
  table.index[static_cast<std::size_t>(x)] =
      std::clamp<std::int64_t>(nearest_element(place, style.nearest), 0, axis.in - 1);
}

void fill_weighted(const ResizeAxis& axis, const ResizeStyle& style, std::int64_t x, double place,
                   double stretch, ResizeTable& table) {
  const std::int64_t taps = table.taps;
  const auto first = static_cast<std::int64_t>(std::floor(place)) - taps / 2 + 1;
  auto* index = table.index.data() + x * taps;
  float* weight = table.weight.data() + x * taps;
  for (std::int64_t i = 0; i < taps; ++i) {
    const std::int64_t element = first + i;
    const bool outside = element < 0 || element >= axis.in;
    const double distance = (place - static_cast<double>(element)) * stretch;
    index[i] = std::clamp<std::int64_t>(element, 0, axis.in - 1);
    const bool skip = outside && style.exclude_outside;
    weight[i] = skip ? 0 : static_cast<float>(kernel_weight(distance, style));
  }
  if (style.exclude_outside || stretch != 1) normalise(weight, taps);
}

}  // namespace

ResizeTable make_table(const ResizeAxis& axis, const ResizeStyle& style) {
  ResizeTable table;
  const bool nearest = style.mode == ResizeMode::Nearest;
  // Shrinking with antialias stretches the kernel over all elements that fall together.
  const double stretch = style.antialias && !nearest ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = style.mode == ResizeMode::Linear ? 1 : 2;
  const double taps = nearest ? 1 : 2 * std::ceil(reach / stretch);
  if (!(taps * static_cast<double>(axis.out) < kMaxEntries)) {
    fail(ErrorKind::BadData, "an axis of {} elements cannot be resized to {} by a scale of {}",
         axis.in, axis.out, axis.scale);
  }
  table.taps = static_cast<std::int64_t>(taps);
  const auto size = static_cast<std::size_t>(axis.out * table.taps);
  table.index.resize(size);
  table.weight.resize(size);
  table.outside.resize(static_cast<std::size_t>(axis.out), false);
  for (std::int64_t x = 0; x < axis.out; ++x) {
    const double place = source_place(x, axis, style);
    if (style.coordinates == "tf_crop_and_resize" &&
        (place < 0 || place > static_cast<double>(axis.in - 1))) {
      table.outside[static_cast<std::size_t>(x)] = true;
      table.any_outside = true;
    }
    if (nearest) {
      fill_nearest(axis, style, x, place, table);
    } else {
      fill_weighted(axis, style, x, place, stretch, table);
    }
  }
  return table;
}

}  // namespace quench::exec
