// SPDX-License-Identifier: Apache-2.0
// From pixels to the tensor a model wants.
#include "data/pixels.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "data/column.h"

namespace quench::data {
namespace {

constexpr int kMaxSide = 65535;

void check_size(const std::optional<ImageSize>& size, const char* what) {
  if (!size) return;
  const auto good = [](int side) { return side >= 1 && side <= kMaxSide; };
  if (!good(size->width) || !good(size->height)) {
    fail(ErrorKind::Usage, "{}: width and height must be from 1 to {}, got {},{}", what, kMaxSide,
         size->width, size->height);
  }
}

double pick(const std::vector<double>& values, int channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(channel)];
}

bool is_channel_dim(const Dim& dim) { return dim.value == 1 || dim.value == 3; }

}  // namespace

NormalizeTable normalize_table(const ImageOptions& options, int channels) {
  NormalizeTable table(static_cast<std::size_t>(channels));
  for (int channel = 0; channel < channels; ++channel) {
    const double mean = pick(options.mean, channel, 0.0);
    const double std = pick(options.std, channel, 1.0);
    auto& row = table[static_cast<std::size_t>(channel)];
    for (std::size_t value = 0; value < row.size(); ++value) {
      row[value] = static_cast<float>((static_cast<double>(value) - mean) / std);
    }
  }
  return table;
}

ImageSize resized(const ImageOptions& options, ImageSize size) {
  const auto [width, height] = size;
  if (options.resize) return *options.resize;
  if (options.resize_shorter) {
    const std::int64_t shorter = *options.resize_shorter;
    const std::int64_t longer = shorter * std::max(width, height) / std::min(width, height);
    if (longer > kMaxPixels / shorter) {
      fail(ErrorKind::BadData, "an image of {}x{} becomes too large when its shorter side is {}",
           width, height, shorter);
    }
    const ImageSize upright{static_cast<int>(shorter), static_cast<int>(longer)};
    return width <= height ? upright : ImageSize{upright.height, upright.width};
  }
  if (options.resize_fit) {
    const ImageSize& box = *options.resize_fit;
    const double ratio = static_cast<double>(width) / height;
    const double wanted = std::ceil(box.height * ratio);
    return {wanted < box.width ? static_cast<int>(wanted) : box.width, box.height};
  }
  return size;
}

bool resizes(const ImageOptions& options) {
  return options.resize || options.resize_shorter || options.resize_fit || options.center_crop;
}

void check_image_options(const ImageOptions& options) {
  check_size(options.resize, "resize");
  check_size(options.resize_fit, "resize-fit");
  check_size(options.center_crop, "center-crop");
  if (options.resize_shorter &&
      (*options.resize_shorter < 1 || *options.resize_shorter > kMaxSide)) {
    fail(ErrorKind::Usage, "resize-shorter must be from 1 to {}, got {}", kMaxSide,
         *options.resize_shorter);
  }
  if (int{options.resize.has_value()} + int{options.resize_shorter.has_value()} +
          int{options.resize_fit.has_value()} >
      1) {
    fail(ErrorKind::Usage, "resize, resize-shorter and resize-fit exclude each other; give one");
  }
  if (options.resize_fit && options.center_crop) {
    fail(ErrorKind::Usage, "resize-fit already gives the final size; leave out center-crop");
  }
  for (const double mean : options.mean) {
    if (!std::isfinite(mean)) fail(ErrorKind::Usage, "mean must be finite numbers");
  }
  for (const double std : options.std) {
    if (!std::isfinite(std) || std == 0) {
      fail(ErrorKind::Usage, "std must be finite numbers other than 0, got {}", std);
    }
  }
}

void check_channel_options(const ImageOptions& options, int channels) {
  const auto check = [channels](const std::vector<double>& values, const char* what) {
    const auto wanted = static_cast<std::size_t>(channels);
    if (values.size() > 1 && values.size() != wanted) {
      fail(ErrorKind::Usage, "{} has {} values, but the model's input has {} channel{}", what,
           values.size(), channels, channels == 1 ? "" : "s");
    }
  };
  check(options.mean, "mean");
  check(options.std, "std");
}

ImageLayout image_layout(const InputSpec& spec, ColorOrder color) {
  const int default_channels = color == ColorOrder::Gray ? 1 : 3;
  ImageLayout layout{.channels = default_channels, .height = {}, .width = {}};
  if (!spec.dims) return layout;
  const std::vector<Dim>& dims = *spec.dims;
  if (dims.size() != 3 && dims.size() != 4) {
    fail(ErrorKind::BadData, "{} cannot take images: it needs 3 or 4 dimensions", spec.describe());
  }
  layout.batch_dim = dims.size() == 4;
  const std::size_t first = dims.size() - 3;
  // [N,1,W,3] is a low image in colour rather than a narrow one in grey.
  const Dim& front = dims[first];
  const Dim& back = dims[first + 2];
  layout.channels_last =
      is_channel_dim(back) && (!is_channel_dim(front) || front.value < back.value);
  const Dim& channels = layout.channels_last ? back : front;
  if (channels.known() && !is_channel_dim(channels)) {
    fail(ErrorKind::BadData, "{} cannot take images: it needs a dimension of 1 or 3 channels",
         spec.describe());
  }
  if (channels.known()) layout.channels = static_cast<int>(channels.value);
  if (layout.channels == 3 && color == ColorOrder::Gray) {
    fail(ErrorKind::Usage, "colour GRAY gives one channel, but {} wants 3", spec.describe());
  }
  layout.height = dims[layout.channels_last ? first : first + 1];
  layout.width = dims[layout.channels_last ? first + 1 : first + 2];
  return layout;
}

Tensor image_to_tensor(const Image& image, const InputSpec& spec, const ImageLayout& layout) {
  const auto wrong = [](const Dim& dim, int size) { return dim.known() && dim.value != size; };
  if (wrong(layout.height, image.height) || wrong(layout.width, image.width)) {
    fail(
        ErrorKind::BadData,
        "the image is {}x{} (width x height) after preparation, but {} wants {}x{}; resize or crop "
        "it to that size",
        image.width, image.height, spec.describe(), to_string(layout.width),
        to_string(layout.height));
  }
  const auto height = static_cast<std::size_t>(image.height);
  const auto width = static_cast<std::size_t>(image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  Shape shape{image.channels, image.height, image.width};
  if (layout.channels_last) shape = {image.height, image.width, image.channels};
  if (layout.batch_dim) shape.insert(shape.begin(), 1);
  Tensor tensor = Tensor::zeros(DType::Float32, std::move(shape));
  const std::span<float> dst = tensor.mutable_data<float>();
  if (layout.channels_last || channels == 1) {
    std::copy(image.pixels.begin(), image.pixels.end(), dst.begin());
  } else {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      float* plane = dst.data() + channel * height * width;
      const float* src = image.pixels.data() + channel;
      for (std::size_t i = 0; i < height * width; ++i) plane[i] = src[i * channels];
    }
  }
  if (spec.raw && spec.dtype == DType::UInt8) return convert(tensor, spec.dtype);
  return in_type_of(spec, tensor);
}

}  // namespace quench::data
