// SPDX-License-Identifier: Apache-2.0
// Pools straight on channels-last memory.
#include "exec/engine/kernels/pool_nhwc.h"

#include <algorithm>
#include <array>
#include <limits>

namespace quench::exec {
namespace {

/// The steps of a window that fall inside an axis: [first, last).
struct Steps {
  std::int64_t first, last;
};

Steps steps_inside(std::int64_t start, std::int64_t kernel, std::int64_t dilation,
                   std::int64_t size) {
  const std::int64_t before = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const std::int64_t room = size - start;
  const std::int64_t after = room <= 0 ? 0 : std::min(kernel, (room + dilation - 1) / dilation);
  return {before, std::max(before, after)};
}

void max_into(float* out, const float* in, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) out[c] = in[c] > out[c] ? in[c] : out[c];
}

}  // namespace

bool is_nhwc_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.dim() == 4 && x.numel() > 0 &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor max_pool_nhwc(const at::Tensor& x, const Window& window, const Ints& pads,
                         const Ints& out) {
  const std::int64_t channels = x.size(1), height = x.size(2), width = x.size(3);
  at::Tensor result = at::empty({x.size(0), channels, out[0], out[1]},
                                x.options().memory_format(at::MemoryFormat::ChannelsLast));
  const float* source = x.data_ptr<float>();
  float* target = result.data_ptr<float>();
  at::parallel_for(0, x.size(0) * out[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* plane = source + (row / out[0]) * height * width * channels;
      const std::int64_t y = (row % out[0]) * window.strides[0] - pads[0];
      const Steps down = steps_inside(y, window.kernel[0], window.dilations[0], height);
      for (std::int64_t column = 0; column < out[1]; ++column) {
        const std::int64_t left = column * window.strides[1] - pads[1];
        const Steps across = steps_inside(left, window.kernel[1], window.dilations[1], width);
        float* best = target + (row * out[1] + column) * channels;
        std::fill_n(best, channels, -std::numeric_limits<float>::infinity());
        for (std::int64_t i = down.first; i < down.last; ++i) {
          const float* line = plane + (y + i * window.dilations[0]) * width * channels;
          for (std::int64_t j = across.first; j < across.last; ++j) {
            max_into(best, line + (left + j * window.dilations[1]) * channels, channels);
          }
        }
      }
    }
  });
  return result;
}

at::Tensor global_average_nhwc(const at::Tensor& x) {
  constexpr std::int64_t kBlock = 64;
  const std::int64_t channels = x.size(1);
  const std::int64_t pixels = x.size(2) * x.size(3);
  const std::int64_t blocks = (channels + kBlock - 1) / kBlock;
  at::Tensor result = at::empty({x.size(0), channels, 1, 1}, x.options());
  const float* source = x.data_ptr<float>();
  float* target = result.data_ptr<float>();
  at::parallel_for(0, x.size(0) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t first = (at % blocks) * kBlock;
      const std::int64_t count = std::min(kBlock, channels - first);
      const float* plane = source + (at / blocks) * pixels * channels + first;
      // Rows are summed in groups first, so that the error does not grow with the plane.
      std::array<double, kBlock> total{};
      constexpr std::int64_t kRows = 256;
      for (std::int64_t pixel = 0; pixel < pixels; pixel += kRows) {
        std::array<float, kBlock> sum{};
        for (std::int64_t i = pixel; i < std::min(pixel + kRows, pixels); ++i) {
          for (std::int64_t c = 0; c < count; ++c) {
            sum[static_cast<std::size_t>(c)] += plane[i * channels + c];
          }
        }
        for (std::size_t c = 0; c < kBlock; ++c) total[c] += sum[c];
      }
      for (std::int64_t c = 0; c < count; ++c) {
        target[(at / blocks) * channels + first + c] =
            static_cast<float>(total[static_cast<std::size_t>(c)] / static_cast<double>(pixels));
      }
    }
  });
  return result;
}

}  // namespace quench::exec
