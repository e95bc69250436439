// SPDX-License-Identifier: Apache-2.0
// What detectors need: NonMaxSuppression, RoiAlign, and sampling at free positions.
#include <algorithm>
#include <array>
#include <cmath>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

struct Box {
  float y1, x1, y2, x2;
};

/// Boxes come as two opposite corners in any order, or as centre, width and height.
Box make_box(const float* four, bool centre) {
  if (centre) {
    const float half_w = four[2] / 2;
    const float half_h = four[3] / 2;
    return {four[1] - half_h, four[0] - half_w, four[1] + half_h, four[0] + half_w};
  }
  return {std::min(four[0], four[2]), std::min(four[1], four[3]), std::max(four[0], four[2]),
          std::max(four[1], four[3])};
}

float area(const Box& box) { return (box.y2 - box.y1) * (box.x2 - box.x1); }

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const float shared = height * width;
  return shared / (area(a) + area(b) - shared);
}

struct Limits {
  std::int64_t most = 0;
  float overlap = 0;
  std::optional<float> score;
};

/// The boxes that stay, best first.
Ints suppress(const std::vector<Box>& boxes, const float* scores, const Limits& limits) {
  Ints order;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(boxes.size()); ++i) {
    if (!limits.score || scores[i] > *limits.score) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  Ints kept;
  for (const std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= limits.most) break;
    const bool covered = std::ranges::any_of(kept, [&](std::int64_t other) {
      return overlap(boxes[static_cast<std::size_t>(candidate)],
                     boxes[static_cast<std::size_t>(other)]) > limits.overlap;
    });
    if (!covered) kept.push_back(candidate);
  }
  return kept;
}

Limits limits_of(const Call& call) {
  Limits limits;
  if (call.has(2)) limits.most = to_int(call.in(2));
  if (call.has(3)) limits.overlap = static_cast<float>(to_double(call.in(3)));
  if (call.has(4)) limits.score = static_cast<float>(to_double(call.in(4)));
  return limits;
}

void check_boxes(const at::Tensor& boxes, const at::Tensor& scores) {
  if (boxes.dim() == 3 && scores.dim() == 3 && boxes.size(2) == 4 &&
      boxes.size(0) == scores.size(0) && boxes.size(1) == scores.size(2)) {
    return;
  }
  fail(ErrorKind::BadData, "boxes must be [batch, n, 4] and scores [batch, classes, n]");
}

Kernel make_non_max_suppression(const OpContext& context) {
  const bool centre = context.node.get_int("center_point_box", 0) != 0;
  return [centre](Call& call) {
    const at::Tensor boxes = call.in(0).contiguous();
    const at::Tensor scores = call.in(1).contiguous();
    check_boxes(boxes, scores);
    const Limits limits = limits_of(call);
    const std::int64_t count = boxes.size(1);
    Ints rows;
    for (std::int64_t batch = 0; batch < boxes.size(0); ++batch) {
      std::vector<Box> list;
      const float* four = boxes.data_ptr<float>() + batch * count * 4;
      for (std::int64_t i = 0; i < count; ++i) list.push_back(make_box(four + 4 * i, centre));
      for (std::int64_t label = 0; label < scores.size(1); ++label) {
        const float* row = scores.data_ptr<float>() + (batch * scores.size(1) + label) * count;
        for (const std::int64_t kept : suppress(list, row, limits)) {
          rows.insert(rows.end(), {batch, label, kept});
        }
      }
    }
    at::Tensor result = at::empty({static_cast<std::int64_t>(rows.size()) / 3, 3}, at::kLong);
    std::ranges::copy(rows, result.data_ptr<std::int64_t>());
    call.set(0, std::move(result));
  };
}

struct RoiAlign {
  std::int64_t height = 1, width = 1, ratio = 0;
  float scale = 1;
  bool half_pixel = true;
  bool maximum = false;
};

/// The four elements around a place, with bilinear weights; nothing outside the plane.
struct Corners {
  std::array<std::int64_t, 4> place{};
  std::array<float, 4> weight{};
};

Corners corners_at(float y, float x, std::int64_t height, std::int64_t width) {
  Corners result;
  if (y < -1 || y > static_cast<float>(height) || x < -1 || x > static_cast<float>(width)) {
    return result;
  }
  const auto along = [](float at, std::int64_t size, std::int64_t& low, std::int64_t& high) {
    at = std::max(at, 0.0F);
    low = std::min(static_cast<std::int64_t>(at), size - 1);
    high = std::min(low + 1, size - 1);
    return low == size - 1 ? 0.0F : at - static_cast<float>(low);
  };
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  const float ly = along(y, height, top, bottom);
  const float lx = along(x, width, left, right);
  result.place = {top * width + left, top * width + right, bottom * width + left,
                  bottom * width + right};
  result.weight = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx};
  return result;
}

/// Where one region's bins begin, how large they are and how many samples each has.
struct RoiSamples {
  float y, x, bin_h, bin_w;
  std::int64_t rows, columns;
};

RoiSamples samples_of(const float* roi, const RoiAlign& align) {
  const float offset = align.half_pixel ? 0.5F : 0.0F;
  RoiSamples at{};
  at.x = roi[0] * align.scale - offset;
  at.y = roi[1] * align.scale - offset;
  float width = roi[2] * align.scale - offset - at.x;
  float height = roi[3] * align.scale - offset - at.y;
  if (!align.half_pixel) {
    width = std::max(width, 1.0F);
    height = std::max(height, 1.0F);
  }
  at.bin_h = height / static_cast<float>(align.height);
  at.bin_w = width / static_cast<float>(align.width);
  const auto samples = [&](float bin) {
    return align.ratio > 0 ? align.ratio : static_cast<std::int64_t>(std::ceil(bin));
  };
  at.rows = samples(at.bin_h);
  at.columns = samples(at.bin_w);
  constexpr std::int64_t kMaxSamples = 100'000;
  if (at.rows > kMaxSamples || at.columns > kMaxSamples) {
    fail(ErrorKind::BadData, "a region takes {}x{} samples", at.rows, at.columns);
  }
  return at;
}

/// One output element: the mean, or the largest weighted corner, over the samples of a bin.
float pool_bin(const float* plane, std::int64_t height, std::int64_t width, const RoiSamples& at,
               const RoiAlign& align, std::int64_t bin) {
  const auto bin_y = static_cast<float>(bin / align.width);
  const auto bin_x = static_cast<float>(bin % align.width);
  float sum = 0;
  float best = 0;
  bool first = true;
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const float y = at.y + bin_y * at.bin_h +
                    (static_cast<float>(i) + 0.5F) * at.bin_h / static_cast<float>(at.rows);
    for (std::int64_t j = 0; j < at.columns; ++j) {
      const float x = at.x + bin_x * at.bin_w +
                      (static_cast<float>(j) + 0.5F) * at.bin_w / static_cast<float>(at.columns);
      const Corners corners = corners_at(y, x, height, width);
      for (std::size_t k = 0; k < 4; ++k) {
        const float value = corners.weight[k] * plane[corners.place[k]];
        sum += value;
        best = first ? value : std::max(best, value);
        first = false;
      }
    }
  }
  const auto count = static_cast<float>(std::max<std::int64_t>(at.rows * at.columns, 1));
  return align.maximum ? best : sum / count;
}

void run_roi_align(Call& call, const RoiAlign& align) {
  const at::Tensor x = call.in(0).contiguous();
  const at::Tensor rois = call.in(1).contiguous();
  const Ints batches = to_ints(wrap_indices(call.in(2), x.size(0)));
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  const std::int64_t bins = align.height * align.width;
  if (rois.dim() != 2 || rois.size(1) != 4 ||
      rois.size(0) != static_cast<std::int64_t>(batches.size())) {
    fail(ErrorKind::BadData, "rois must be [n, 4] with one batch index each");
  }
  at::Tensor result = at::empty({rois.size(0), channels, align.height, align.width}, x.options());
  auto* out = result.data_ptr<float>();
  for (std::size_t n = 0; n < batches.size(); ++n) {
    const RoiSamples at = samples_of(rois.data_ptr<float>() + 4 * n, align);
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* plane = x.data_ptr<float>() + (batches[n] * channels + c) * height * width;
      for (std::int64_t bin = 0; bin < bins; ++bin) {
        *out++ = pool_bin(plane, height, width, at, align, bin);
      }
    }
  }
  call.set(0, std::move(result));
}

Kernel make_roi_align(const OpContext& context) {
  const Node& node = context.node;
  const std::string mode = node.get_string("mode", "avg");
  const std::string coordinates = node.get_string(
      "coordinate_transformation_mode", context.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "avg" && mode != "max") return refuse("mode '{}' is not known", mode);
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return refuse("coordinate_transformation_mode '{}' is not known", coordinates);
  }
  const RoiAlign align{.height = node.get_int("output_height", 1),
                       .width = node.get_int("output_width", 1),
                       .ratio = node.get_int("sampling_ratio", 0),
                       .scale = node.get_float("spatial_scale", 1.0F),
                       .half_pixel = coordinates == "half_pixel",
                       .maximum = mode == "max"};
  if (align.height < 1 || align.width < 1) return refuse("the output size must be positive");
  return [align](Call& call) { run_roi_align(call, align); };
}

Kernel make_grid_sample(const OpContext& context) {
  const std::string mode = context.node.get_string("mode", "bilinear");
  const std::string padding = context.node.get_string("padding_mode", "zeros");
  const bool align = context.node.get_int("align_corners", 0) != 0;
  const int how = mode == "bilinear" || mode == "linear" ? 0
                  : mode == "nearest"                    ? 1
                  : mode == "bicubic" || mode == "cubic" ? 2
                                                         : -1;
  const int pad = padding == "zeros"        ? 0
                  : padding == "border"     ? 1
                  : padding == "reflection" ? 2
                                            : -1;
  if (how < 0) return refuse("mode '{}' is not known", mode);
  if (pad < 0) return refuse("padding_mode '{}' is not known", padding);
  if (how == 2 && context.input_rank(0) == 5) return refuse("cubic needs an input of rank 4");
  // libtorch rounds halves away from zero there.
  if (how == 1 && context.input_rank(0) == 5) return refuse("nearest needs an input of rank 4");
  return [=](Call& call) {
    call.set(0,
             at::grid_sampler(call.in(0).contiguous(), call.in(1).contiguous(), how, pad, align));
  };
}

Kernel make_affine_grid(const OpContext& context) {
  const bool align = context.node.get_int("align_corners", 0) != 0;
  return [align](Call& call) {
    call.set(0, at::affine_grid_generator(call.in(0), to_ints(call.in(1)), align));
  };
}

}  // namespace

KernelInfo kernel_NonMaxSuppression() { return {.since = 10, .make = make_non_max_suppression}; }
KernelInfo kernel_RoiAlign() { return {.since = 10, .make = make_roi_align}; }
KernelInfo kernel_GridSample() { return {.since = 16, .make = make_grid_sample}; }
KernelInfo kernel_AffineGrid() { return {.since = 20, .make = make_affine_grid}; }

}  // namespace quench::exec
