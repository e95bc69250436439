// SPDX-License-Identifier: Apache-2.0
// MaxRoiPool: the greatest element in each bin of a region.
#include <algorithm>
#include <array>
#include <cmath>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

struct RoiPool {
  std::array<std::int64_t, 2> bins{1, 1};
  float scale = 1;
};

/// The elements of one bin along an axis.
struct Span {
  std::int64_t first = 0, end = 0;
};

/// Regions begin and end at whole elements, and the last one counts.
Span span_of(float low, float high, float scale, std::int64_t bin, std::int64_t bins,
             std::int64_t size) {
  constexpr float kMost = 1e9F;
  const auto whole = [&](float at) {
    const float place = std::round(at * scale);
    return static_cast<std::int64_t>(std::isnan(place) ? 0 : std::clamp(place, -kMost, kMost));
  };
  const std::int64_t start = whole(low);
  const std::int64_t length = std::max<std::int64_t>(whole(high) - start + 1, 1);
  const float step = static_cast<float>(length) / static_cast<float>(bins);
  const auto at = [&](float place) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(place) + start, 0, size);
  };
  return {at(std::floor(static_cast<float>(bin) * step)),
          at(std::ceil(static_cast<float>(bin + 1) * step))};
}

/// Zero where a bin is empty.
float greatest(const float* plane, std::int64_t width, const Span& rows, const Span& columns) {
  if (rows.end <= rows.first || columns.end <= columns.first) return 0;
  float most = plane[rows.first * width + columns.first];
  for (std::int64_t y = rows.first; y < rows.end; ++y) {
    const float* row = plane + y * width;
    most = std::max(most, *std::max_element(row + columns.first, row + columns.end));
  }
  return most;
}

void run_roi_pool(Call& call, const RoiPool& pool) {
  const at::Tensor x = call.in(0).contiguous();
  const at::Tensor rois = call.in(1).contiguous();
  if (x.dim() != 4 || rois.dim() != 2 || rois.size(1) != 5) {
    fail(ErrorKind::BadData, "its input must be [n, c, h, w] and regions [n, 5]");
  }
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  at::Tensor result = at::empty({rois.size(0), channels, pool.bins[0], pool.bins[1]}, x.options());
  auto* out = result.data_ptr<float>();
  for (std::int64_t n = 0; n < rois.size(0); ++n) {
    const float* roi = rois.data_ptr<float>() + 5 * n;
    if (!(roi[0] >= 0 && roi[0] < static_cast<float>(x.size(0)))) {
      fail(ErrorKind::BadData, "region {} is of image {}; there are {}", n, roi[0], x.size(0));
    }
    const float* image =
        x.data_ptr<float>() + static_cast<std::int64_t>(roi[0]) * channels * height * width;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < pool.bins[0]; ++i) {
        const Span rows = span_of(roi[2], roi[4], pool.scale, i, pool.bins[0], height);
        for (std::int64_t k = 0; k < pool.bins[1]; ++k) {
          const Span columns = span_of(roi[1], roi[3], pool.scale, k, pool.bins[1], width);
          *out++ = greatest(image + c * height * width, width, rows, columns);
        }
      }
    }
  }
  call.set(0, std::move(result));
}

Kernel make_roi_pool(const OpContext& context) {
  const Ints shape = context.node.get_ints("pooled_shape");
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
    return refuse("pooled_shape must be two positive sizes");
  }
  const RoiPool pool{.bins = {shape[0], shape[1]},
                     .scale = context.node.get_float("spatial_scale", 1.0F)};
  return [pool](Call& call) { run_roi_pool(call, pool); };
}

}  // namespace

KernelInfo kernel_MaxRoiPool() { return {.since = 1, .make = make_roi_pool}; }

}  // namespace quench::exec
