// SPDX-License-Identifier: Apache-2.0
// Decodes and prepares images with OpenCV.
#include "data/images/image_reader.h"

#include <memory>
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "base/file.h"
#include "base/format.h"
#include "data/image_header.h"

namespace quench::data {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

int interpolation(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::Nearest:
      return cv::INTER_NEAREST;
    case ResizeMethod::Cubic:
      return cv::INTER_CUBIC;
    case ResizeMethod::Linear:
      break;
  }
  return cv::INTER_LINEAR;
}

cv::Mat decode(std::span<const std::byte> bytes) {
  check_image(bytes);
  if (bytes.size() > kMaxFileBytes) fail(ErrorKind::BadData, "the image file is too large");
  const cv::Mat raw(1, static_cast<int>(bytes.size()), CV_8UC1,
                    const_cast<std::byte*>(bytes.data()));  // NOLINT: OpenCV has no const view
  cv::Mat image = cv::imdecode(raw, cv::IMREAD_COLOR);
  if (image.empty()) fail(ErrorKind::BadData, "the image is damaged and cannot be decoded");
  return image;
}

cv::Mat convert_color(cv::Mat image, ColorOrder color, int channels) {
  if (channels == 1) {
    cv::cvtColor(image, image, cv::COLOR_BGR2GRAY);
  } else if (color == ColorOrder::Rgb) {
    cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
  }
  return image;
}

cv::Mat normalize(const cv::Mat& image, const NormalizeTable& table) {
  const int channels = image.channels();
  cv::Mat result(image.rows, image.cols, CV_MAKETYPE(CV_32F, channels));
  for (int y = 0; y < image.rows; ++y) {
    const auto* src = image.ptr<std::uint8_t>(y);
    auto* dst = result.ptr<float>(y);
    for (int x = 0; x < image.cols; ++x) {
      for (int c = 0; c < channels; ++c) {
        *dst++ = table[static_cast<std::size_t>(c)][*src++];
      }
    }
  }
  return result;
}

cv::Mat resize(const cv::Mat& image, const ImageOptions& options) {
  const auto [width, height] = resized(options, {image.cols, image.rows});
  const cv::Size size(width, height);
  if (size == image.size()) return image;
  cv::Mat result;
  cv::resize(image, result, size, 0, 0, interpolation(options.method));
  return result;
}

cv::Mat crop(const cv::Mat& image, const ImageOptions& options) {
  if (!options.center_crop) return image;
  const auto [width, height] = *options.center_crop;
  if (width > image.cols || height > image.rows) {
    fail(ErrorKind::BadData, "cannot crop {}x{} out of an image of {}x{}; resize it first", width,
         height, image.cols, image.rows);
  }
  return image(cv::Rect((image.cols - width) / 2, (image.rows - height) / 2, width, height));
}

// Padding is 0 after normalisation, so it is added last.
cv::Mat pad(const cv::Mat& image, const ImageOptions& options) {
  if (!options.resize_fit || image.cols == options.resize_fit->width) return image;
  cv::Mat result = cv::Mat::zeros(image.rows, options.resize_fit->width, image.type());
  image.copyTo(result(cv::Rect(0, 0, image.cols, image.rows)));
  return result;
}

Image to_image(const cv::Mat& mat) {
  Image image{mat.cols, mat.rows, mat.channels(), {}};
  const auto row = static_cast<std::size_t>(mat.cols) * static_cast<std::size_t>(mat.channels());
  image.pixels.reserve(row * static_cast<std::size_t>(mat.rows));
  for (int y = 0; y < mat.rows; ++y) {
    const auto* src = mat.ptr<float>(y);
    image.pixels.insert(image.pixels.end(), src, src + row);
  }
  return image;
}

class OpenCvReader final : public ImageReader {
 public:
  OpenCvReader(ImageOptions options, int channels)
      : options_(std::move(options)),
        channels_(channels),
        table_(normalize_table(options_, channels)) {}

  Image read(const std::string& path) const override {
    const std::vector<std::byte> bytes = read_bytes(path);
    try {
      return to_image(prepare(decode(bytes)));
    } catch (Error& error) {
      error.in(path);
      throw;
    } catch (const cv::Exception& error) {
      fail(ErrorKind::BadData, "{}: the image cannot be read: {}", path, error.err);
    }
  }

 private:
  cv::Mat prepare(const cv::Mat& image) const {
    if (options_.normalize == NormalizeOrder::First) {
      const cv::Mat colored = convert_color(image, options_.color, channels_);
      return pad(crop(resize(normalize(colored, table_), options_), options_), options_);
    }
    const cv::Mat cropped = crop(resize(image, options_), options_).clone();
    return pad(normalize(convert_color(cropped, options_.color, channels_), table_), options_);
  }

  ImageOptions options_;
  int channels_;
  NormalizeTable table_;
};

}  // namespace
}  // namespace quench::data

extern "C" __attribute__((visibility("default"))) quench::data::ImageReader*
quench_make_image_reader(const quench::ImageOptions& options, int channels) {
  // The readers bring their own threads, and a library must not print.
  cv::setNumThreads(1);
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  return new quench::data::OpenCvReader(options, channels);
}
