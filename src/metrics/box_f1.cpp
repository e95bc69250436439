// SPDX-License-Identifier: Apache-2.0
// How many boxes of a detector are the reference's: the harmonic mean of precision and recall.
#include "metrics/boxes.h"
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

class BoxF1 final : public Metric {
 public:
  explicit BoxF1(std::shared_ptr<const Truths> truths = nullptr) : truths_(std::move(truths)) {}
  void add(const Tensor& actual, const Tensor& expected) override {
    for (const auto& [found, wanted] : pair_boxes(actual, expected, truths_.get())) {
      for (const std::int64_t each : match(found, wanted, kSameThing)) right_ += each >= 0;
      found_ += static_cast<std::int64_t>(found.size());
      wanted_ += static_cast<std::int64_t>(wanted.size());
      ++images_;
    }
  }
  double value() const override {
    if (images_ == 0) return kNothing;
    if (found_ + wanted_ == 0) return 100;  // nothing to see, and nothing seen
    return 200.0 * static_cast<double>(right_) / static_cast<double>(found_ + wanted_);
  }

 private:
  std::shared_ptr<const Truths> truths_;
  std::int64_t right_ = 0;
  std::int64_t found_ = 0;
  std::int64_t wanted_ = 0;
  std::int64_t images_ = 0;
};

}  // namespace

MetricEntry box_f1() {
  return {.info = {"box_f1",
                   "detection: F1 in percent against the labels' or the reference's boxes, by an "
                   "overlap of half and scores from 0.25",
                   false, true, Gather::Mean, TruthKind::Boxes},
          .make = []() -> std::unique_ptr<Metric> { return std::make_unique<BoxF1>(); },
          .fits = holds_boxes,
          .against = against_truths<BoxF1>};
}

}  // namespace quench::metrics
