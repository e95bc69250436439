// SPDX-License-Identifier: Apache-2.0
// Splits the result into rows, and rows into what all taps reach and what only some do.
#include "exec/engine/kernels/direct_conv.h"

#include "exec/engine/kernels/row_product.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

// Measured: with more of either, oneDNN's kernels are as fast or faster.
constexpr std::int64_t kMaxChannels = 4;
constexpr std::int64_t kMaxTaps = 64;
constexpr std::int64_t kMaxOutputs = 32;

constexpr std::int64_t kGrain = 1 << 14;  // multiplications of registers

/// Activations that are part of the loop.
bool clamps_only(const Fusion& fusion) {
  return fusion.activation.empty() || fusion.activation == "relu" || fusion.activation == "clip";
}

bool fits(const at::Tensor& bias, std::int64_t columns) {
  return !bias.defined() || bias.numel() == columns;
}

}  // namespace

DirectWeights::DirectWeights(const Fusion& fusion, const at::Tensor& weight, const at::Tensor& bias)
    : columns(weight.size(1)) {
  if (fusion.activation == "relu") least = 0;
  if (fusion.activation == "clip") {
    least = fusion.alpha;
    most = fusion.beta;
  }
  const std::int64_t padded = (columns + kRowLanes - 1) / kRowLanes * kRowLanes;
  rows.assign(static_cast<std::size_t>(weight.size(0) * padded), 0.0F);
  start.assign(static_cast<std::size_t>(padded), 0.0F);
  const at::Tensor plain = weight.to(at::kFloat).contiguous();
  for (std::int64_t tap = 0; tap < plain.size(0); ++tap) {
    std::copy_n(plain.data_ptr<float>() + tap * columns, columns, rows.begin() + tap * padded);
  }
  if (!bias.defined()) return;
  const at::Tensor added = bias.to(at::kFloat).contiguous();
  std::copy_n(added.data_ptr<float>(), columns, start.begin());
}

RowProduct DirectWeights::product() const {
  return {.start = start.data(), .least = least, .most = most, .columns = columns};
}

std::optional<DirectConv> DirectConv::make(const ConvAttributes& attributes, const Fusion& fusion,
                                           const at::Tensor& weight, const at::Tensor& bias) {
  if (!can_multiply_rows() || attributes.rank != 2 || attributes.groups != 1 ||
      !clamps_only(fusion) || fusion.residual != Residual::None || weight.size(1) > kMaxChannels ||
      weight[0].numel() > kMaxTaps || weight.size(0) > kMaxOutputs || !fits(bias, weight.size(0))) {
    return std::nullopt;
  }
  return DirectConv(attributes.window, weight.sizes().vec(),
                    DirectWeights(fusion, weight.reshape({weight.size(0), -1}).t(), bias));
}

/// The rows of one call. All sizes are read once: tensors answer slowly.
struct DirectConv::Rows {
  struct Place {
    std::int64_t y, x;  ///< from the corner of the window
  };

  Rows(const DirectConv& conv, const at::Tensor& src, const at::Tensor& dst)
      : window(conv.window_),
        height(src.size(2)),
        width(src.size(3)),
        rows(dst.size(2)),
        pixels(dst.size(3)),
        columns(dst.size(1)),
        image_stride(src.stride(0)),
        row_stride(src.stride(2)),
        column_stride(src.stride(3)),
        pads(conv.window_.pads_for(src.sizes().slice(2), {conv.shape_[2], conv.shape_[3]})),
        product(conv.weights_.product()),
        from(src.data_ptr<float>()),
        to(dst.data_ptr<float>()) {
    product.step = window.strides[1] * column_stride;
    product.stride = columns;
    for (std::int64_t c = 0; c < conv.shape_[1]; ++c) {
      for (std::int64_t row = 0; row < conv.shape_[2]; ++row) {
        for (std::int64_t column = 0; column < conv.shape_[3]; ++column) {
          const Place at{row * window.dilations[0], column * window.dilations[1]};
          places.push_back(at);
          all.push_back({.offset = c * src.stride(1) + at.y * row_stride + at.x * column_stride,
                         .weights = conv.weights_.row(std::ssize(all))});
        }
      }
    }
    // The pixels whose windows lie between the left and the right border.
    const std::int64_t room = width - 1 - places.back().x + pads[1];
    const std::int64_t step = window.strides[1];
    first_inside = std::min((pads[1] + step - 1) / step, pixels);
    last_inside = room < 0 ? first_inside : std::clamp(room / step + 1, first_inside, pixels);
  }

  void operator()(std::int64_t begin, std::int64_t end) const {
    std::vector<RowTap> some;
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t x = 0; x < first_inside; ++x) run(i, x, x + 1, some);
      if (first_inside < last_inside) run(i, first_inside, last_inside, some);
      for (std::int64_t x = last_inside; x < pixels; ++x) run(i, x, x + 1, some);
    }
  }

 private:
  /// Pixels of one row that have the same taps.
  void run(std::int64_t row, std::int64_t x, std::int64_t last, std::vector<RowTap>& some) const {
    const std::int64_t top = row % rows * window.strides[0] - pads[0];
    const std::int64_t left = x * window.strides[1] - pads[1];
    RowProduct part = product;
    part.taps = taps_inside(top, left, some);
    part.src = from + row / rows * image_stride + top * row_stride + left * column_stride;
    part.dst = to + (row * pixels + x) * columns;
    part.pixels = last - x;
    multiply_row(part);
  }

  /// The taps of a window that lie in the image.
  std::span<const RowTap> taps_inside(std::int64_t top, std::int64_t left,
                                      std::vector<RowTap>& some) const {
    if (top >= 0 && top + places.back().y < height && left >= 0 && left + places.back().x < width) {
      return all;
    }
    some.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::int64_t y = top + places[i].y;
      const std::int64_t x = left + places[i].x;
      if (y >= 0 && y < height && x >= 0 && x < width) some.push_back(all[i]);
    }
    return some;
  }

  const Window& window;
  std::int64_t height, width;          ///< of an image
  std::int64_t rows, pixels, columns;  ///< of its result
  std::int64_t image_stride, row_stride, column_stride;
  Ints pads;
  RowProduct product;  ///< what all parts have in common
  const float* from;
  float* to;
  std::vector<Place> places;
  std::vector<RowTap> all;
  std::int64_t first_inside = 0, last_inside = 0;
};

void DirectConv::operator()(const at::Tensor& src, const at::Tensor& dst) const {
  if (dst.numel() == 0) return;
  const Rows rows(*this, src, dst);
  const std::int64_t work = dst.size(3) * std::ssize(weights_.rows) / kRowLanes;
  share(0, dst.size(0) * dst.size(2), std::max<std::int64_t>(kGrain / work, 1),
        [&](std::int64_t begin, std::int64_t end) { rows(begin, end); });
}

std::optional<DirectConvTranspose> DirectConvTranspose::make(const Fusion& fusion,
                                                             const at::Tensor& weight,
                                                             const at::Tensor& bias) {
  constexpr std::int64_t kMaxDepth = 256;
  if (!can_multiply_rows() || fusion.residual != Residual::None || weight.size(0) > kMaxDepth ||
      !fits(bias, weight.size(1))) {
    return std::nullopt;
  }
  const at::Tensor taps = weight.permute({2, 0, 3, 1});
  const at::Tensor tiled = bias.defined() ? bias.repeat({weight.size(3)}) : bias;
  std::vector<DirectWeights> rows;
  for (std::int64_t y = 0; y < weight.size(2); ++y) {
    rows.emplace_back(fusion, taps[y].reshape({weight.size(0), -1}), tiled);
  }
  return DirectConvTranspose(clamps_only(fusion) ? Fusion() : fusion, weight.sizes().vec(),
                             std::move(rows));
}

at::Tensor DirectConvTranspose::operator()(const at::Tensor& src) const {
  const std::int64_t depth = shape_[0];
  const std::int64_t pixels = src.size(3);
  const std::int64_t height = shape_[2];
  const at::Tensor dst =
      at::empty({src.size(0), shape_[1], src.size(2) * height, pixels * shape_[3]},
                at::TensorOptions(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  if (dst.numel() == 0) return dst;
  const auto* from = src.data_ptr<float>();
  auto* to = dst.data_ptr<float>();
  const std::int64_t work = pixels * height * std::ssize(rows_[0].rows) / kRowLanes;
  const std::int64_t grain = std::max<std::int64_t>(kGrain / work, 1);
  share(0, src.size(0) * src.size(2), grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<RowTap> taps(static_cast<std::size_t>(depth));
    for (std::int64_t line = begin * height; line < end * height; ++line) {
      const DirectWeights& row = rows_[static_cast<std::size_t>(line % height)];
      RowProduct product = row.product();
      for (std::int64_t k = 0; k < depth; ++k) {
        taps[static_cast<std::size_t>(k)] = {.offset = k, .weights = row.row(k)};
      }
      product.src = from + line / height * pixels * depth;
      product.step = depth;
      product.taps = taps;
      product.dst = to + line * pixels * row.columns;
      product.stride = row.columns;
      product.pixels = pixels;
      multiply_row(product);
    }
  });
  return fusion_.empty() ? dst : apply(fusion_, dst, {});
}

}  // namespace quench::exec
