// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST through the data sources of Quench, so that training and evaluation see the same.
#include "fashion_data.h"

#include "quench/data.h"

namespace fashion {

Images read_images(const std::string& folder, const std::string& set, std::int64_t limit) {
  quench::DataOptions options;
  options.path = folder + "/" + set + "-images-idx3-ubyte.gz";
  options.labels = folder + "/" + set + "-labels-idx1-ubyte.gz";
  options.limit = limit;
  options.image.mean = {kMean};
  options.image.std = {kStd};
  quench::Value input;
  input.name = "image";
  input.type = quench::ValueType::tensor(
      quench::DType::Float32, std::vector<quench::Dim>{{-1, "N"}, {1}, {kSide}, {kSide}});

  const auto source = quench::open_data(options, {input});
  Images images;
  images.pixels.reserve(static_cast<std::size_t>(source->size() * kPixels));
  for (std::int64_t index = 0; index < source->size(); ++index) {
    const quench::Sample sample = source->read(index);
    const auto pixels = sample.inputs.at(input.name).data<float>();
    images.pixels.insert(images.pixels.end(), pixels.begin(), pixels.end());
    images.labels.push_back(sample.label);
  }
  return images;
}

void copy_moved(const Images& images, std::int64_t index, int down, int right, bool mirrored,
                float* dst) {
  constexpr auto kBackground = static_cast<float>(-kMean / kStd);
  const float* src = images.pixels.data() + index * kPixels;
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t column = 0; column < kSide; ++column) {
      const std::int64_t from_row = row - down;
      const std::int64_t from_column = (mirrored ? kSide - 1 - column : column) - right;
      const bool inside =
          from_row >= 0 && from_row < kSide && from_column >= 0 && from_column < kSide;
      *dst++ = inside ? src[from_row * kSide + from_column] : kBackground;
    }
  }
}

}  // namespace fashion
