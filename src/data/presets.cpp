// SPDX-License-Identifier: Apache-2.0
// How images are usually prepared, by name.
#include "quench/presets.h"

#include <vector>

#include "base/format.h"
#include "base/nearest.h"

namespace quench {
namespace {

using Numbers = std::vector<double>;

// Means and deviations of ImageNet on the 0..255 scale, red first.
const Numbers kMean = {123.675, 116.28, 103.53};
const Numbers kStd = {58.395, 57.12, 57.375};
const Numbers kMeanBgr = {103.53, 116.28, 123.675};
const Numbers kStdBgr = {57.375, 57.12, 58.395};
// One number holds for any channels, a single gray one too.
const Numbers kHalf = {127.5};

/// Shorter side to 256, the middle 224 of it: how networks for ImageNet are evaluated.
ImageOptions photograph(ColorOrder color, Numbers mean, Numbers std) {
  ImageOptions image;
  image.color = color;
  image.resize_shorter = 256;
  image.center_crop = ImageSize{224, 224};
  image.mean = std::move(mean);
  image.std = std::move(std);
  return image;
}

ImageOptions text_line() {
  ImageOptions image;
  image.color = ColorOrder::Bgr;
  image.resize_fit = ImageSize{320, 48};
  image.mean = kHalf;
  image.std = kHalf;
  return image;
}

ImageOptions unsized(ColorOrder color, Numbers mean, Numbers std) {
  ImageOptions image;
  image.color = color;
  image.mean = std::move(mean);
  image.std = std::move(std);
  return image;
}

}  // namespace

std::span<const Preset> all_presets() {
  using enum ColorOrder;
  static const std::vector<Preset> list = {
      {"imagenet",
       "torchvision, timm, PaddleClas: ImageNet's mean and std, RGB, 256 then the middle 224",
       photograph(Rgb, kMean, kStd)},
      {"imagenet-bgr", "the same with BGR", photograph(Bgr, kMeanBgr, kStdBgr)},
      {"tf", "TensorFlow's MobileNet, Inception: -1 to 1, RGB, 256 then the middle 224",
       photograph(Rgb, kHalf, kHalf)},
      {"caffe", "Caffe, Keras' ResNet and VGG: BGR less its means, not divided",
       photograph(Bgr, {103.939, 116.779, 123.68}, {1, 1, 1})},
      {"unit", "0 to 1, RGB, 256 then the middle 224", photograph(Rgb, {0}, {255})},
      {"yolo", "0 to 1, RGB, as large as it is: add --resize", unsized(Rgb, {0}, {255})},
      {"paddleocr-det",
       "PaddleOCR's text detection: BGR, with ImageNet's numbers in their order for RGB",
       unsized(Bgr, kMean, kStd)},
      {"paddleocr-rec", "PaddleOCR's text recognition: BGR, -1 to 1, 48 high, padded to 320",
       text_line()},
  };
  return list;
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : all_presets()) {
    if (preset.name == name) return preset;
    names.emplace_back(preset.name);
  }
  fail(ErrorKind::Usage, "there is no preset '{}'{}; there are {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

}  // namespace quench
