// SPDX-License-Identifier: Apache-2.0
// Paddle's operators that take images apart into windows and move their parts.
#include <array>

#include "base/format.h"
#include "formats/paddle/layout.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMost = 1 << 24;

/// Values of a shape, each by its place.
template <typename Function>
Tensor filled(const Shape& shape, Function&& value) {
  std::vector<float> values(static_cast<std::size_t>(num_elements(shape).value_or(0)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(static_cast<std::int64_t>(i));
  return Tensor::of<float>(shape, std::span<const float>(values));
}

/// The sides of a window, or its steps.
Ints pair_of(Op& op, std::string_view attribute) {
  Ints values = op.integers(attribute);
  if (values.size() == 1) values.push_back(values[0]);
  if (values.size() != 2 || values[0] <= 0 || values[1] <= 0) {
    fail(ErrorKind::BadModel, "its {} are not two sizes", attribute);
  }
  return values;
}

/// Paddings of one, two (rows, columns) or four numbers as ONNX has them: begins, then ends.
Ints paddings(Op& op) {
  const Ints given = op.integers("paddings");
  if (given.size() == 1) return Ints(4, given[0]);
  if (given.size() == 2) return {given[0], given[1], given[0], given[1]};
  if (given.size() != 4) fail(ErrorKind::BadModel, "it has {} paddings", given.size());
  return given;
}

/// How many elements a window has.
std::int64_t size_of(const Ints& kernel) {
  return kernel[0] > kMost / kernel[1] ? kMost : kernel[0] * kernel[1];
}

/// Filters that pick each element of a window, for each channel.
Tensor picks(std::int64_t channels, const Ints& kernel) {
  const std::int64_t window = size_of(kernel);
  if (window > kMost / window || channels > kMost / (window * window)) {
    fail(ErrorKind::Unsupported, "its windows of {} x {} are too large", kernel[0], kernel[1]);
  }
  return filled({channels * window, 1, kernel[0], kernel[1]},
                [&](std::int64_t i) { return i % window == i / window % window ? 1.0F : 0.0F; });
}

/// A convolution that picks each element of a window into a channel of its own.
void read_unfold(Op& op) {
  const Ints kernel = pair_of(op, "kernel_sizes");
  const Shape shape = op.shape("X").value_or(Shape());
  const std::int64_t channels = shape.size() == 4 ? shape[1] : -1;
  if (channels <= 0) fail(ErrorKind::Unsupported, "its input is no image of known channels");
  const Tensor weight = convert(picks(channels, kernel), op.dtype("X"));
  const ValueId parts = op.node("Conv", {op.in("X"), op.constant(weight)},
                                {{"strides", pair_of(op, "strides")},
                                 {"pads", paddings(op)},
                                 {"dilations", pair_of(op, "dilations")},
                                 {"group", channels}});
  op.set("Y", op.reshape(parts, {0, channels * size_of(kernel), -1}));
}

/// The reverse: a transposed convolution that adds what windows say of each element.
void read_fold(Op& op) {
  const Ints kernel = pair_of(op, "kernel_sizes");
  const Ints strides = pair_of(op, "strides");
  const Ints dilations = pair_of(op, "dilations");
  const Ints sizes = pair_of(op, "output_sizes");
  const Ints pads = paddings(op);
  const Shape shape = op.shape("X").value_or(Shape());
  const std::int64_t window = size_of(kernel);
  if (shape.size() != 3 || shape[1] <= 0 || shape[1] % window != 0) {
    fail(ErrorKind::Unsupported, "its input has no known windows of {} elements", window);
  }
  const std::int64_t channels = shape[1] / window;
  Ints counts;
  Ints missing;
  for (std::size_t i = 0; i < 2; ++i) {
    const bool small = sizes[i] <= kMost && pads[i] >= 0 && pads[i] <= kMost && pads[i + 2] >= 0 &&
                       pads[i + 2] <= kMost && dilations[i] <= kMost && kernel[i] <= kMost;
    const std::int64_t room =
        small ? sizes[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1 : -1;
    if (room < 0) fail(ErrorKind::BadModel, "its windows do not fit an image of {}", sizes[i]);
    counts.push_back(room / strides[i] + 1);
    missing.push_back(room % strides[i]);
  }
  const ValueId maps = op.reshape(op.in("X"), {0, shape[1], counts[0], counts[1]});
  const Tensor weight = convert(picks(channels, kernel), op.dtype("X"));
  op.set("Y", op.node("ConvTranspose", {maps, op.constant(weight)},
                      {{"strides", strides},
                       {"pads", pads},
                       {"output_padding", missing},
                       {"dilations", dilations},
                       {"group", channels}}));
}

/// Windows along the last axis, one a column.
void read_frame(Op& op) {
  const Shape shape = op.shape("X").value_or(Shape());
  const std::int64_t length = op.integer("frame_length");
  const std::int64_t step = op.integer("hop_length");
  const std::int64_t size = shape.empty() ? -1 : shape.back();
  if (op.integer("axis") != -1 || length <= 0 || step <= 0 || size < length) {
    fail(ErrorKind::Unsupported, "it is read where it cuts a last axis of known size");
  }
  const std::int64_t count = (size - length) / step + 1;
  if (length > kMost / count) fail(ErrorKind::Unsupported, "it makes {} frames", count);
  Ints places;
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t k = 0; k < count; ++k) places.push_back(i + k * step);
  }
  const ValueId index =
      op.constant(Tensor::of<std::int64_t>({length, count}, std::span<const std::int64_t>(places)));
  op.set("Out", op.node("Gather", {op.in("X"), index}, {{"axis", std::int64_t{-1}}}));
}

/// ONNX puts the places of a block before the channels, Paddle behind them.
void read_pixel_unshuffle(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  const Shape shape = layout.channels_first(op.shape("X").value_or(Shape()));
  const std::int64_t side = op.integer("downscale_factor");
  if (shape.size() != 4 || shape[1] <= 0 || side <= 0 || side > kMost) {
    fail(ErrorKind::Unsupported, "its input is no image of known channels");
  }
  const ValueId blocks =
      op.node("SpaceToDepth", {layout.first(op, op.in("X"))}, {{"blocksize", side}});
  const ValueId split = op.reshape(blocks, {0, side * side, shape[1], -1});
  layout.set(op, "Out", op.node("Reshape", {op.transpose(split, {0, 2, 1, 3}), op.sizes(blocks)}));
}

/// Of `seg_num` images in a row some channels come from the image before and some from the one
/// behind; zeros where there is none.
void read_temporal_shift(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  const Shape shape = layout.channels_first(op.shape("X").value_or(Shape()));
  const std::int64_t segments = op.integer("seg_num");
  if (shape.size() != 4 || shape[1] <= 0 || segments <= 0) {
    fail(ErrorKind::Unsupported, "its input is no row of images of known channels");
  }
  const auto share = static_cast<float>(op.real("shift_ratio"));
  const auto channels = static_cast<float>(shape[1]);
  const auto first = static_cast<std::int64_t>(channels * share);
  const auto second = static_cast<std::int64_t>(channels * 2 * share);
  const ValueId x = layout.first(op, op.in("X"));
  const ValueId image = op.slice(op.sizes(x), 0, 1, kEnd);
  const ValueId rows = op.node("Reshape", {x, op.node("Concat", {op.ints({-1, segments}), image},
                                                      {{"axis", std::int64_t{0}}})});
  const auto moved = [&](ValueId part, bool later) {
    const Ints pads{0, later ? 1 : 0, 0, 0, 0, 0, later ? 0 : 1, 0, 0, 0};
    const ValueId padded = op.node("Pad", {part, op.ints(pads), op.scalar(0, op.dtype("X"))});
    return later ? op.slice(padded, 1, 0, segments) : op.slice(padded, 1, 1, segments + 1);
  };
  const ValueId joined =
      op.node("Concat",
              {moved(op.slice(rows, 2, 0, first), true),
               moved(op.slice(rows, 2, first, second), false), op.slice(rows, 2, second, kEnd)},
              {{"axis", std::int64_t{2}}});
  layout.set(op, "Out", op.node("Reshape", {joined, op.sizes(x)}));
}

/// The places of an image's pixels from -1 to 1, in their own row of three: x, y, 1.
Tensor places(std::int64_t height, std::int64_t width, bool corners) {
  const auto place = [corners](std::int64_t at, std::int64_t size) {
    const auto x = static_cast<float>(at);
    const auto n = static_cast<float>(size);
    if (corners) return size == 1 ? -1.0F : -1.0F + 2.0F * x / (n - 1.0F);
    return (2.0F * x + 1.0F) / n - 1.0F;
  };
  return filled({1, height * width, 3}, [&](std::int64_t i) {
    const std::int64_t pixel = i / 3;
    if (i % 3 == 0) return place(pixel % width, width);
    return i % 3 == 1 ? place(pixel / width, height) : 1.0F;
  });
}

/// Where each pixel of an image lies after an affine map of two dimensions.
void read_affine_grid(Op& op) {
  const Ints shape = op.numbers("output_shape");
  if (shape.size() != 4) fail(ErrorKind::Unsupported, "only maps of images are read");
  const std::int64_t height = shape[2];
  const std::int64_t width = shape[3];
  if (height <= 0 || width <= 0 || height > kMost / width) {
    fail(ErrorKind::Unsupported, "a map of {} x {} is not made", height, width);
  }
  const Tensor base = places(height, width, op.flag("align_corners"));
  const ValueId theta = op.transpose(op.in("Theta"), {0, 2, 1});
  const ValueId mapped = op.node("MatMul", {op.constant(convert(base, op.dtype("Theta"))), theta});
  op.set("Output", op.reshape(mapped, {-1, height, width, 2}));
}

constexpr std::string_view kWindow = "kernel_sizes strides=1,1 paddings=0,0 dilations=1,1";

constexpr auto kRows = std::to_array<OpRow>({
    {"unfold", "", "X", "Y", kWindow, read_unfold},
    {"fold", "", "X", "Y", "output_sizes kernel_sizes strides=1,1 paddings=0,0 dilations=1,1",
     read_fold},
    {"frame", "", "X", "Out", "frame_length hop_length axis=-1", read_frame},
    {"pixel_unshuffle", "", "X", "Out", "downscale_factor=1 data_format=NCHW",
     read_pixel_unshuffle},
    {"temporal_shift", "", "X", "Out", "seg_num shift_ratio=0.25 data_format=NCHW",
     read_temporal_shift},
    {"affine_grid", "", "Theta output_shape:OutputShape", "Output",
     "output_shape= align_corners=true", read_affine_grid},
});

}  // namespace

std::span<const OpRow> window_rows() { return kRows; }

}  // namespace quench::paddle
