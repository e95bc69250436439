// SPDX-License-Identifier: Apache-2.0
// Segmentation: how much the areas of each class are those of the labels or the reference.
#include <map>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

/// Below this size a map of scores is more likely the head of a detector.
constexpr std::int64_t kLeastSide = 64;
constexpr std::int64_t kMostClasses = 200;

bool fits(const Tensor& output) {
  const Shape& shape = output.shape();
  return shape.size() == 4 && info(output.dtype()).is_float && shape[1] > 1 &&
         shape[1] <= kMostClasses && shape[2] >= kLeastSide && shape[3] >= kLeastSide;
}

/// The class of a pixel: the plane with the highest score.
std::size_t class_at(std::span<const double> planes, std::size_t pixel, std::size_t pixels) {
  std::size_t best = 0;
  for (std::size_t c = 1; c * pixels < planes.size(); ++c) {
    if (planes[c * pixels + pixel] > planes[best * pixels + pixel]) best = c;
  }
  return best;
}

/// The class of each pixel of one image.
struct ClassMap {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::int64_t> classes;
};

/// Planes of scores in either layout, one plane that says how sure the second of two classes is, or
/// classes themselves.
std::vector<ClassMap> maps_of(const Tensor& output) {
  const Shape& shape = output.shape();
  const bool whole = shape.size() == 3;
  if (!whole && shape.size() != 4) {
    fail(ErrorKind::BadData,
         "iou takes planes of scores, [N,classes,H,W] or [N,H,W,classes], or classes [N,H,W]; the "
         "output is {}",
         to_string(shape));
  }
  const bool last = !whole && shape[3] < shape[1] && shape[3] < shape[2];
  const std::int64_t planes = whole ? 1 : shape[last ? 3 : 1];
  const std::int64_t height = shape[whole || last ? 1 : 2];
  const std::int64_t width = shape[whole || last ? 2 : 3];
  const Tensor wide = convert(output, DType::Float64);
  const std::int64_t pixels = height * width;
  const auto at = [&](std::int64_t image, std::int64_t plane, std::int64_t pixel) {
    const std::int64_t first = image * planes * pixels;
    return wide.data<double>()[static_cast<std::size_t>(
        first + (last ? pixel * planes + plane : plane * pixels + pixel))];
  };
  std::vector<ClassMap> maps;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    ClassMap map{height, width, {}};
    for (std::int64_t p = 0; p < pixels; ++p) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < planes; ++c) {
        if (at(i, c, p) > at(i, best, p)) best = c;
      }
      if (planes == 1) best = whole ? static_cast<std::int64_t>(at(i, 0, p)) : at(i, 0, p) >= 0.5;
      map.classes.push_back(best);
    }
    maps.push_back(std::move(map));
  }
  return maps;
}

class Iou final : public Metric {
 public:
  explicit Iou(std::shared_ptr<const Truths> truths = nullptr) : truths_(std::move(truths)) {}
  void add(const Tensor& actual, const Tensor& expected) override {
    if (truths_) {
      add_labelled(actual, expected);
      return;
    }
    expect_same_size(actual, expected);
    const Shape& shape = expected.shape();
    if (shape.size() != 4 || shape[1] < 2) {
      fail(ErrorKind::BadData, "iou takes planes of scores, [N,classes,H,W]; the output is {}",
           to_string(shape));
    }
    const Tensor a = convert(actual, DType::Float64);
    const Tensor e = convert(expected, DType::Float64);
    const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
    const std::size_t image = static_cast<std::size_t>(shape[1]) * pixels;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i) {
      const auto got = a.data<double>().subspan(i * image, image);
      const auto want = e.data<double>().subspan(i * image, image);
      for (std::size_t p = 0; p < pixels; ++p) {
        count(class_at(got, p, pixels), class_at(want, p, pixels));
      }
    }
  }
  double value() const override {
    double sum = 0;
    double classes = 0;
    for (const auto& [label, area] : areas_) {
      if (area.wanted == 0) continue;
      sum += static_cast<double>(area.shared) / static_cast<double>(area.wanted + area.wrong);
      ++classes;
    }
    return classes == 0 ? kNothing : 100 * sum / classes;
  }

 private:
  struct Area {
    std::int64_t shared = 0, wanted = 0, wrong = 0;  ///< wrong: said where it is not
  };
  /// A mask of another size is looked at where the output has its pixels.
  void add_labelled(const Tensor& actual, const Tensor& labels) {
    const std::vector<ClassMap> maps = maps_of(actual);
    const auto truths = truths_of(*truths_, labels, actual, static_cast<std::int64_t>(maps.size()));
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const ClassMap& map = maps[i];
      const Shape& size = truths[i].values.shape();
      const auto mask = truths[i].values.data<std::int64_t>();
      if (mask.empty()) continue;
      for (std::int64_t y = 0; y < map.height; ++y) {
        const std::int64_t row = (2 * y + 1) * size[0] / (2 * map.height);
        for (std::int64_t x = 0; x < map.width; ++x) {
          const std::int64_t column = (2 * x + 1) * size[1] / (2 * map.width);
          const std::int64_t want = mask[static_cast<std::size_t>(row * size[1] + column)];
          const std::int64_t got = map.classes[static_cast<std::size_t>(y * map.width + x)];
          if (want >= 0) count(static_cast<std::size_t>(got), static_cast<std::size_t>(want));
        }
      }
    }
  }
  void count(std::size_t got, std::size_t want) {
    ++areas_[want].wanted;
    if (got == want) {
      ++areas_[want].shared;
    } else {
      ++areas_[got].wrong;
    }
  }

  std::shared_ptr<const Truths> truths_;
  std::map<std::size_t, Area> areas_;
};

}  // namespace

MetricEntry iou() {
  return {.info = {"iou",
                   "segmentation: shared area over the area of both, in percent, mean over the "
                   "classes of the labels or the reference",
                   false, true, Gather::Mean, TruthKind::Masks},
          .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Iou>(); },
          .fits = fits,
          .against = against_truths<Iou>,
          .whole = true};
}

}  // namespace quench::metrics
