// SPDX-License-Identifier: Apache-2.0
// Convolution of bytes on NHWC memory by our own tiles: every pixel of the result is a row of
// bytes, which lie in the source as runs.
#include <cstring>

#include "base/file.h"
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/product.h"
#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;
/// Runs of at most so many bytes are copied side by side.
constexpr std::int64_t kDenseRun = 32;

/// Where the taps of a pixel of the result lie.
struct Patches {
  const std::uint8_t* src = nullptr;
  const std::uint8_t* end = nullptr;
  const std::uint8_t* zeros = nullptr;  ///< a run of zero points
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t dst_height = 0, dst_width = 0;
  std::int64_t top = 0, left = 0;
  std::int64_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  std::int64_t rows = 1;     ///< of the kernel
  std::int64_t columns = 1;  ///< pieces of a kernel's row
  std::int64_t pixels = 1;   ///< of a piece, which lie side by side
  RowForm form;
  bool dense = false;  ///< all runs of a row are copied to lie side by side

  void operator()(std::int64_t first, std::int64_t count, const std::uint8_t** pieces,
                  std::uint8_t* scratch) const {
    Places places{.at = pieces, .stride = count, .scratch = scratch};
    const std::uint8_t** const stop = pieces + count;
    while (places.at != stop) {
      const std::int64_t x = first % dst_width;
      const std::int64_t y = first / dst_width % dst_height;
      const Line line{.image = src + first / dst_width / dst_height * height * width * channels,
                      .y = y * stride_y - top};
      const std::int64_t last = std::min(x + (stop - places.at), dst_width);
      locate(line, x, last, places);
      first += last - x;
    }
  }

 private:
  /// Where the next piece goes, those of a pixel `stride` apart, and the scratch that is left.
  struct Places {
    const std::uint8_t** at;
    std::int64_t stride;
    std::uint8_t* scratch;
  };
  /// The image of a row of pixels of the result, and the first of its rows that they read.
  struct Line {
    const std::uint8_t* image;
    std::int64_t y;

    const std::uint8_t* row(const Patches& of, std::int64_t which) const {
      return image + (y + which * of.dilation_y) * of.width * of.channels;
    }
  };

  /// Pixels of a row from `x` up to `last`: those at the border one by one.
  void locate(const Line& line, std::int64_t x, std::int64_t last, Places& places) const {
    const std::int64_t reach = (columns - 1) * dilation_x + pixels;
    const bool whole = line.y >= 0 && line.y + (rows - 1) * dilation_y < height && reach <= width;
    std::int64_t begin = last;
    std::int64_t stop = last;
    if (whole) {
      begin = std::clamp((left + stride_x - 1) / stride_x, x, last);
      stop = std::clamp((width - reach + left) / stride_x + 1, begin, last);
      // Whole registers are read.
      const std::int64_t read = dense ? kDenseRun : form.padded();
      const auto is_safe = [&](std::int64_t at) {
        const std::int64_t column = at * stride_x - left + (columns - 1) * dilation_x;
        return end - (line.row(*this, rows - 1) + column * channels) >= read;
      };
      while (stop > begin && !is_safe(stop - 1)) --stop;
    }
    for (; x < begin; ++x) locate_one(line, x * stride_x - left, places);
    if (stop > begin) locate_inside(line, begin, stop - begin, places);
    for (x = std::max(x, stop); x < last; ++x) locate_one(line, x * stride_x - left, places);
  }

  void locate_inside(const Line& line, std::int64_t x, std::int64_t count, Places& places) const {
    const std::int64_t step = stride_x * channels;
    const std::uint8_t* from = line.row(*this, 0) + (x * stride_x - left) * channels;
    if (dense) {
      const bool narrow = form.length <= rows * 16;
      return narrow ? gather<16>(from, count, places) : gather<kDenseRun>(from, count, places);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::uint8_t** at = places.at + (row * columns + column) * places.stride;
        const std::uint8_t* first =
            from + (row * dilation_y * width + column * dilation_x) * channels;
        for (std::int64_t i = 0; i < count; ++i) at[i] = first + i * step;
      }
    }
    places.at += count;
  }

  template <std::int64_t kSize>
  void gather(const std::uint8_t* from, std::int64_t count, Places& places) const {
    return rows == 3 ? gather<kSize, 3>(from, count, places)
                     : gather<kSize, 0>(from, count, places);
  }

  /// The runs of each pixel side by side. What is copied too much is overwritten by the next. All
  /// that the loop reads is local: bytes that are written could be anything else.
  template <std::int64_t kSize, std::int64_t kRows>
  void gather(const std::uint8_t* from, std::int64_t count, Places& places) const {
    const std::int64_t lines = kRows == 0 ? rows : kRows;
    const std::int64_t step = stride_x * channels;
    const std::int64_t length = pixels * channels;
    const std::int64_t line = dilation_y * width * channels;
    const std::int64_t padded = form.padded();
    const std::uint8_t** at = places.at;
    std::uint8_t* scratch = places.scratch;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t row = 0; row < lines; ++row) {
        std::memcpy(scratch + row * length, from + row * line, kSize);
      }
      at[i] = scratch;
      scratch += padded;
      from += step;
    }
    places.at = at + count;
    places.scratch = scratch;
  }

  void locate_one(const Line& line, std::int64_t x0, Places& places) const {
    const std::uint8_t** at = places.at++;
    const std::int64_t length = pixels * channels;
    if (dense) *at = places.scratch;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t y = line.y + row * dilation_y;
      for (std::int64_t column = 0; column < columns; ++column) {
        const std::int64_t x = x0 + column * dilation_x;
        const bool outside = y < 0 || y >= height || x + pixels <= 0 || x >= width;
        if (dense) {
          join(outside ? nullptr : line.row(*this, row), x, places.scratch);
          places.scratch += length;
          continue;
        }
        *at = zeros;
        if (!outside) {
          join(line.row(*this, row), x, places.scratch);
          *at = places.scratch;
          places.scratch += form.padded();
        }
        at += places.stride;
      }
    }
    if (dense) places.scratch += form.padded() - form.length;
  }

  /// A run that may cross the image's border.
  void join(const std::uint8_t* line, std::int64_t x, std::uint8_t* to) const {
    std::memcpy(to, zeros, static_cast<std::size_t>(pixels * channels));
    if (line == nullptr) return;
    const std::int64_t begin = std::max<std::int64_t>(x, 0);
    const std::int64_t stop = std::min(x + pixels, width);
    std::memcpy(to + (begin - x) * channels, line + begin * channels,
                static_cast<std::size_t>((stop - begin) * channels));
  }
};

/// Weights [O, I, H, W] in the order of NHWC patches.
PackedColumns pack(const at::Tensor& weights, RowForm form) {
  const std::int64_t channels = weights.size(1);
  const std::int64_t taps = weights.size(2) * weights.size(3);
  std::vector<std::int64_t> places;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t c = 0; c < channels; ++c) places.push_back(c * taps + tap);
  }
  return {weights.data_ptr<std::int8_t>(), weights.size(0), channels * taps, places, form};
}

/// Short runs waste the end of their last four bytes, and a pointer each.
bool is_dense(const Window& window, at::IntArrayRef weights) {
  return window.dilations[1] == 1 && weights[2] > 1 && weights[1] * weights[3] <= kDenseRun;
}

RowForm row_form(const Window& window, const at::Tensor& weights) {
  const bool joined = window.dilations[1] == 1;
  if (is_dense(window, weights.sizes())) return {.runs = 1, .length = weights[0].numel()};
  return {.runs = weights.size(2) * (joined ? 1 : weights.size(3)),
          .length = weights.size(1) * (joined ? weights.size(3) : 1)};
}

at::Tensor to_2d(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.unsqueeze(2) : tensor;
}

class TiledConv {
 public:
  TiledConv(Window window, const ByteParams& source, const IntegerTail& tail,
            const at::Tensor& weights, LayerNumbers numbers)
      : window_(std::move(window)),
        source_(source),
        type_(tail.type()),
        float_type_(tail.float_type),
        shape_(weights.sizes().vec()),
        numbers_(std::move(numbers)),
        columns_(pack(weights, row_form(window_, weights))),
        zeros_(static_cast<std::size_t>(columns_.form().padded() + kDenseRun),
               static_cast<std::uint8_t>(source.zero)) {}

  void operator()(Call& call) const {
    const at::Tensor& given = call.in(LayerNode::kX);
    const at::Tensor dst = convolve(to_2d(given), to_2d(call.in(LayerNode::kResidual)));
    call.set(0, given.dim() == 3 ? dst.squeeze(2) : dst);
  }

  at::Tensor convolve(const at::Tensor& given, const at::Tensor& added) const {
    const at::Tensor src = given.contiguous(kNhwc);
    if (src.dim() != 4 || src.size(1) != shape_[1] || src.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
           c10::toString(src.scalar_type()), to_string(src.sizes().vec()), shape_[1]);
    }
    const Ints shape = convolved_shape(window_, src.sizes(), shape_);
    const at::Tensor residual = residual_for(shape, added);
    at::Tensor dst = new_tensor(shape, type_, kNhwc);
    if (dst.numel() == 0) return dst;
    Ints pads = window_.pads_for(src.sizes().slice(2), {shape_[2], shape_[3]});
    at::Tensor image = src;
    if (is_worth_framing(src, pads)) {
      image = framed(src, pads);
      pads.assign(pads.size(), 0);
    }
    ProductRows rows{.count = shape[0] * shape[2] * shape[3],
                     .pieces = pieces(image, pads, shape),
                     .flip = source_.type == at::kChar,
                     .start = numbers_.start.data(),
                     .residual = residual.defined() ? residual.data_ptr() : nullptr,
                     .dst = dst.data_ptr()};
    multiply_rows(columns_, numbers_.finish, rows);
    return type_ == at::kFloat && float_type_ != at::kFloat ? dst.to(float_type_) : dst;
  }

 private:
  at::Tensor residual_for(const Ints& shape, const at::Tensor& added) const {
    if (numbers_.finish.add == AddBytes::None) return {};
    if (added.sizes() != shape) {
      fail(ErrorKind::BadData, "the residual has shape {}, but the result {}",
           to_string(added.sizes().vec()), to_string(shape));
    }
    return added.contiguous(kNhwc);
  }

  /// In a small image many pixels lie at the border, where patches must be put together.
  static bool is_worth_framing(const at::Tensor& src, const Ints& pads) {
    constexpr std::int64_t kSmall = 1 << 16;
    return src.numel() / src.size(0) <= kSmall &&
           std::ranges::any_of(pads, [](auto each) { return each != 0; });
  }

  /// The image with its padding around it.
  at::Tensor framed(const at::Tensor& src, const Ints& pads) const {
    const std::int64_t height = src.size(2) + pads[0] + pads[2];
    const std::int64_t width = src.size(3) + pads[1] + pads[3];
    at::Tensor result =
        new_tensor({src.size(0), src.size(1), height, width}, src.scalar_type(), kNhwc);
    auto* to = mutable_bytes_of(result);
    const auto* from = bytes_of(src);
    const std::int64_t channels = src.size(1);
    const std::int64_t line = src.size(3) * channels;
    const std::int64_t wide = width * channels;
    const std::int64_t grain = std::max<std::int64_t>(kLookUpGrain / wide, 1);
    share(0, src.size(0) * height, grain, [&](std::int64_t begin, std::int64_t end) {
      std::memset(to + begin * wide, zeros_[0], static_cast<std::size_t>((end - begin) * wide));
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t y = i % height - pads[0];
        if (y < 0 || y >= src.size(2)) continue;
        std::memcpy(to + i * wide + pads[1] * channels,
                    from + (i / height * src.size(2) + y) * line, static_cast<std::size_t>(line));
      }
    });
    return result;
  }

  PiecesFunction pieces(const at::Tensor& src, const Ints& pads, const Ints& shape) const {
    const bool one = shape_[2] == 1 && shape_[3] == 1 && shape[2] == src.size(2) &&
                     shape[3] == src.size(3) && pads[0] == 0 && pads[1] == 0;
    if (one)
      return plain_rows(bytes_of(src), src.size(0) * src.size(2) * src.size(3), columns_.form());
    const bool joined = window_.dilations[1] == 1;
    return Patches{.src = bytes_of(src),
                   .end = bytes_of(src) + src.numel(),
                   .zeros = zeros_.data(),
                   .height = src.size(2),
                   .width = src.size(3),
                   .channels = src.size(1),
                   .dst_height = shape[2],
                   .dst_width = shape[3],
                   .top = pads[0],
                   .left = pads[1],
                   .stride_y = window_.strides[0],
                   .stride_x = window_.strides[1],
                   .dilation_y = window_.dilations[0],
                   .dilation_x = window_.dilations[1],
                   .rows = shape_[2],
                   .columns = joined ? 1 : shape_[3],
                   .pixels = joined ? shape_[3] : 1,
                   .form = columns_.form(),
                   .dense = is_dense(window_, shape_)};
  }

  Window window_;
  ByteParams source_;
  at::ScalarType type_;
  at::ScalarType float_type_;
  Ints shape_;
  LayerNumbers numbers_;
  PackedColumns columns_;
  std::vector<std::uint8_t> zeros_;
};

std::shared_ptr<TiledConv> make(const ConvAttributes& attributes, const ByteParams& source,
                                const IntegerTail& tail, const SignedWeights& weights,
                                const at::Tensor& bias) {
  if (attributes.groups != 1 || attributes.rank > 2) return nullptr;
  auto numbers = layer_numbers(source, tail, weights, bias);
  if (!numbers) return nullptr;
  Window window = attributes.window;
  if (attributes.rank == 1) pad_to_2d(window);
  const at::Tensor plain = to_2d(weights.data).contiguous();
  auto conv = std::make_shared<TiledConv>(window, source, tail, plain, std::move(*numbers));
  release_pages({static_cast<const std::byte*>(plain.data_ptr()), plain.nbytes()});
  return conv;
}

}  // namespace

std::optional<Kernel> make_tiled_conv(const ConvAttributes& attributes, const ByteParams& source,
                                      const IntegerTail& tail, const SignedWeights& weights,
                                      const at::Tensor& bias) {
  auto conv = make(attributes, source, tail, weights, bias);
  if (!conv) return std::nullopt;
  return sharing([conv](Call& call) { (*conv)(call); });
}

BytesFunction make_tiled_conv_function(const ConvAttributes& attributes, const ByteParams& source,
                                       const IntegerTail& tail, const SignedWeights& weights,
                                       const at::Tensor& bias) {
  auto conv = make(attributes, source, tail, weights, bias);
  if (!conv) return {};
  return [conv](const at::Tensor& src) { return conv->convolve(src, {}); };
}

}  // namespace quench::exec
