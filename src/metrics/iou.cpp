// SPDX-License-Identifier: Apache-2.0
// Segmentation: how much the areas of each class are those of the reference.
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

class Iou final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
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
  void count(std::size_t got, std::size_t want) {
    ++areas_[want].wanted;
    if (got == want) {
      ++areas_[want].shared;
    } else {
      ++areas_[got].wrong;
    }
  }

  std::map<std::size_t, Area> areas_;
};

}  // namespace

MetricEntry iou() {
  return {.info = {"iou",
                   "segmentation: shared area over the area of both, in percent, mean over the "
                   "classes of the reference",
                   false, true},
          .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Iou>(); },
          .fits = fits,
          .whole = true};
}

}  // namespace quench::metrics
