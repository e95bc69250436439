// SPDX-License-Identifier: Apache-2.0
// Mean average precision of a detector, against labels or the reference's boxes.
#include <algorithm>
#include <array>
#include <map>

#include "metrics/boxes.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

constexpr std::size_t kOverlaps = 10;  ///< 0.5, 0.55 to 0.95, as COCO has it

constexpr double kLeastOfLabelled =
    0.001;                               ///< against labels the surest boxes count, however unsure
constexpr std::size_t kMostFound = 100;  ///< in an image, as COCO has it

struct Found {
  double score = 0;
  std::array<bool, kOverlaps> right{};
};
struct Class {
  std::vector<Found> found;
  std::int64_t wanted = 0;
};

/// The area under precision by recall, precision made to fall.
double average_precision(std::vector<Found> found, std::int64_t wanted, std::size_t level) {
  std::ranges::stable_sort(found, std::greater<>(), &Found::score);
  std::vector<double> precision;
  std::vector<double> recall;
  double right = 0;
  for (const Found& each : found) {
    right += each.right[level] ? 1 : 0;
    precision.push_back(right / static_cast<double>(precision.size() + 1));
    recall.push_back(right / static_cast<double>(wanted));
  }
  for (std::size_t i = precision.size(); i-- > 1;) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  double area = 0;
  double before = 0;
  for (std::size_t i = 0; i < recall.size(); ++i) {
    area += (recall[i] - before) * precision[i];
    before = recall[i];
  }
  return area;
}

class MeanAveragePrecision final : public Metric {
 public:
  explicit MeanAveragePrecision(std::shared_ptr<const Truths> truths = nullptr)
      : truths_(std::move(truths)) {}
  void add(const Tensor& actual, const Tensor& expected) override {
    const double least = truths_ ? kLeastOfLabelled : kLeastScore;
    for (auto [found, wanted] : pair_boxes(actual, expected, truths_.get(), least)) {
      if (found.size() > kMostFound) found.resize(kMostFound);
      add_image(found, wanted);
      ++images_;
    }
  }
  double value() const override {
    if (images_ == 0) return kNothing;
    double sum = 0;
    double classes = 0;
    for (const auto& [label, each] : classes_) {
      if (each.wanted == 0) continue;  // what is found of it is counted where there is some
      for (std::size_t k = 0; k < kOverlaps; ++k) {
        sum += average_precision(each.found, each.wanted, k) / kOverlaps;
      }
      ++classes;
    }
    return classes == 0 ? kNothing : 100 * sum / classes;
  }

 private:
  void add_image(const std::vector<Box>& found, const std::vector<Box>& wanted) {
    std::vector<Found> all;
    for (const Box& box : found) all.push_back({.score = box.score});
    for (std::size_t k = 0; k < kOverlaps; ++k) {
      const auto matches = match(found, wanted, 0.5 + 0.05 * static_cast<double>(k));
      for (std::size_t i = 0; i < all.size(); ++i) all[i].right[k] = matches[i] >= 0;
    }
    for (std::size_t i = 0; i < all.size(); ++i) classes_[found[i].label].found.push_back(all[i]);
    for (const Box& box : wanted) ++classes_[box.label].wanted;
  }

  std::shared_ptr<const Truths> truths_;
  std::map<std::int64_t, Class> classes_;
  std::int64_t images_ = 0;
};

}  // namespace

MetricEntry map() {
  return {
      .info = {"map",
               "detection: mean average precision in percent over overlaps of 0.5 to 0.95, against "
               "the labels' or the reference's boxes",
               false, true, Gather::Mean, TruthKind::Boxes},
      .make = []() -> std::unique_ptr<Metric> { return std::make_unique<MeanAveragePrecision>(); },
      .fits = holds_boxes,
      .against = against_truths<MeanAveragePrecision>,
      .whole = true};
}

}  // namespace quench::metrics
