// SPDX-License-Identifier: Apache-2.0
// How many boxes of a detector are the reference's: the harmonic mean of precision and recall.
#include "metrics/boxes.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

class BoxF1 final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    const auto found = boxes_of(actual, expected);
    const auto wanted = boxes_of(expected, expected);
    for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
      for (const std::int64_t each : match(found[i], wanted[i], kSameThing)) right_ += each >= 0;
      found_ += static_cast<std::int64_t>(found[i].size());
      wanted_ += static_cast<std::int64_t>(wanted[i].size());
      ++images_;
    }
  }
  double value() const override {
    if (images_ == 0) return kNothing;
    if (found_ + wanted_ == 0) return 100;  // nothing to see, and nothing seen
    return 200.0 * static_cast<double>(right_) / static_cast<double>(found_ + wanted_);
  }

 private:
  std::int64_t right_ = 0;
  std::int64_t found_ = 0;
  std::int64_t wanted_ = 0;
  std::int64_t images_ = 0;
};

}  // namespace

MetricEntry box_f1() {
  return {.info = {"box_f1",
                   "detection: F1 in percent against the reference's boxes, by an overlap of half "
                   "and scores from 0.25",
                   false, true},
          .make = []() -> std::unique_ptr<Metric> { return std::make_unique<BoxF1>(); },
          .fits = holds_boxes};
}

}  // namespace quench::metrics
