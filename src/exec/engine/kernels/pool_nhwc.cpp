// SPDX-License-Identifier: Apache-2.0
// The mean over all pixels, straight on channels-last memory.
#include "exec/engine/kernels/pool_nhwc.h"

#include <algorithm>
#include <array>

#include "exec/engine/parallel.h"

namespace quench::exec {
bool is_nhwc_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.dim() == 4 && x.numel() > 0 &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor global_average_nhwc(const at::Tensor& x) {
  constexpr std::int64_t kBlock = 64;
  const std::int64_t channels = x.size(1);
  const std::int64_t pixels = x.size(2) * x.size(3);
  const std::int64_t blocks = (channels + kBlock - 1) / kBlock;
  at::Tensor result = at::empty({x.size(0), channels, 1, 1}, x.options());
  const float* source = x.data_ptr<float>();
  float* target = result.data_ptr<float>();
  share(0, x.size(0) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
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
