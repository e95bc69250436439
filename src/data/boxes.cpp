// SPDX-License-Identifier: Apache-2.0
// Moves boxes as images are resized and cropped.
#include "data/boxes.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "data/image_header.h"
#include "data/pixels.h"

namespace quench::data {
namespace {

class PlacedBoxes final : public Truths {
 public:
  PlacedBoxes(std::string path, std::shared_ptr<const BoxList> boxes, ImageOptions image,
              ImageFile file)
      : path_(std::move(path)),
        boxes_(std::move(boxes)),
        image_(std::move(image)),
        file_(std::move(file)) {}

  TruthKind kind() const override { return TruthKind::Boxes; }
  std::string path() const override { return path_; }
  Truth read(std::int64_t index) const override {
    const ImageBoxes& entry = boxes_->at(static_cast<std::size_t>(index));
    ImageSize size = entry.size;
    if (size.width == 0) {
      const std::string file = file_(index);
      try {
        size = check_image(read_bytes(file));
      } catch (Error& error) {
        throw error.in(file);
      }
    }
    return placed(entry, size, image_);
  }

 private:
  std::string path_;
  std::shared_ptr<const BoxList> boxes_;
  ImageOptions image_;
  ImageFile file_;
};

}  // namespace

std::shared_ptr<const Truths> place_boxes(std::string path, std::shared_ptr<const BoxList> boxes,
                                          const ImageOptions& image, ImageFile file) {
  return std::make_shared<PlacedBoxes>(std::move(path), std::move(boxes), image, std::move(file));
}

Truth placed(const ImageBoxes& image, ImageSize size, const ImageOptions& options) {
  const ImageSize large = resized(options, size);
  const ImageSize seen = options.center_crop.value_or(options.resize_fit.value_or(large));
  // Padding stands on the right: only a crop moves the origin.
  const double left = options.center_crop ? (large.width - seen.width) / 2 : 0;  // whole pixels
  const double top = options.center_crop ? (large.height - seen.height) / 2 : 0;
  const double wide = static_cast<double>(large.width) / size.width;
  const double high = static_cast<double>(large.height) / size.height;
  std::vector<double> values;
  for (const auto& [x1, y1, x2, y2, label] : image.boxes) {
    const std::array<double, 4> box = {
        std::clamp(x1 * wide - left, 0.0, static_cast<double>(seen.width)),
        std::clamp(y1 * high - top, 0.0, static_cast<double>(seen.height)),
        std::clamp(x2 * wide - left, 0.0, static_cast<double>(seen.width)),
        std::clamp(y2 * high - top, 0.0, static_cast<double>(seen.height))};
    if (box[2] <= box[0] || box[3] <= box[1]) continue;
    values.insert(values.end(), box.begin(), box.end());
    values.push_back(label);
  }
  const auto count = static_cast<std::int64_t>(values.size() / 5);
  return {Tensor::of<double>({count, 5}, std::span<const double>(values)), seen};
}

}  // namespace quench::data
