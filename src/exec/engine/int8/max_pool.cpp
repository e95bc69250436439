// SPDX-License-Identifier: Apache-2.0
// The greatest bytes of windows over NHWC images.
#include <algorithm>

#include "base/cpu.h"
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/loops_avx512.h"
#include "exec/engine/kernels/pool.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

class ByteMaxPool {
 public:
  explicit ByteMaxPool(Window window) : window_(std::move(window)) {}

  std::optional<at::Tensor> operator()(const at::Tensor& given) const {
    const bool bytes = given.scalar_type() == at::kByte || given.scalar_type() == at::kChar;
    if (!bytes || given.dim() != 4 || given.numel() == 0) return std::nullopt;
    const at::Tensor x = given.contiguous(kNhwc);
    Ints shape = {x.size(0), x.size(1)};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t room = x.size(static_cast<std::int64_t>(2 + i)) + window_.pads[i] +
                                window_.pads[2 + i] - window_.kernel[i];
      if (room < 0) return std::nullopt;
      shape.push_back(room / window_.strides[i] + 1);
    }
    at::Tensor dst = new_tensor(shape, x.scalar_type(), kNhwc);
    auto* to = mutable_bytes_of(dst);
    const std::int64_t line = shape[3] * shape[1];
    const std::int64_t taps = window_.kernel[0] * window_.kernel[1];
    const std::int64_t grain = std::max<std::int64_t>(8 * kByteGrain / (line * taps), 1);
    share(0, shape[0] * shape[2], grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<const std::uint8_t*> pixels(static_cast<std::size_t>(taps));
      for (std::int64_t i = begin; i < end; ++i) {
        pool_line(x, {.image = i / shape[2], .y = i % shape[2]}, pixels, to + i * line);
      }
    });
    return dst;
  }

 private:
  /// A line of the result.
  struct Line {
    std::int64_t image, y;
  };

  void pool_line(const at::Tensor& x, Line line, std::vector<const std::uint8_t*>& pixels,
                 std::uint8_t* to) const {
    const std::int64_t channels = x.size(1);
    const std::int64_t width = x.size(3);
    const bool is_signed = x.scalar_type() == at::kChar;
    const auto* image = bytes_of(x) + line.image * x.size(2) * width * channels;
    const std::int64_t first = line.y * window_.strides[0] - window_.pads[0];
    const std::int64_t top = std::max<std::int64_t>(first, 0);
    const std::int64_t bottom = std::min(first + window_.kernel[0], x.size(2));
    const std::int64_t count =
        (width + window_.pads[1] + window_.pads[3] - window_.kernel[1]) / window_.strides[1] + 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t start = i * window_.strides[1] - window_.pads[1];
      const std::int64_t left = std::max<std::int64_t>(start, 0);
      const std::int64_t right = std::min(start + window_.kernel[1], width);
      std::size_t found = 0;
      for (std::int64_t y = top; y < bottom; ++y) {
        const std::uint8_t* pixel = image + (y * width + left) * channels;
        for (std::int64_t n = left; n < right; ++n, pixel += channels) pixels[found++] = pixel;
      }
      avx512::max_rows({pixels.data(), found}, is_signed, to + i * channels, channels);
    }
  }

  Window window_;
};

}  // namespace

FastPoolFunction make_byte_max_pool(const Pool& pool) {
  constexpr std::int64_t kMaxTaps = 1 << 10;
  const Window& window = pool.window;
  const bool plain = pool.rank == 2 && !pool.lifted && !pool.ceil && window.pads.size() == 4 &&
                     window.dilations == Ints{1, 1} && window.auto_pad == "NOTSET" &&
                     window.kernel[0] <= kMaxTaps && window.kernel[1] <= kMaxTaps &&
                     window.kernel[0] * window.kernel[1] <= kMaxTaps &&
                     // Every window has a pixel of the image.
                     std::max(window.pads[0], window.pads[2]) < window.kernel[0] &&
                     std::max(window.pads[1], window.pads[3]) < window.kernel[1];
  if (!plain || !cpu::uses(Isa::Avx512)) return {};
  return ByteMaxPool(window);
}

}  // namespace quench::exec
