// SPDX-License-Identifier: Apache-2.0
// Cosine similarity with a reference, averaged over samples.
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

template <typename T>
double cosine_of(std::span<const T> a, std::span<const T> b) {
  double dot = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (equally_special(a[i], b[i])) continue;
    const double x = a[i];
    const double y = b[i];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  if (aa == 0 && bb == 0) return 1;
  const double cosine = dot / (std::sqrt(aa) * std::sqrt(bb));
  // One side all zero, NaN or infinity: nothing alike.
  return std::isfinite(cosine) ? std::min(1.0, std::max(-1.0, cosine)) : 0.0;
}

class Cosine final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    for_each_row(actual, expected, [this](auto a, auto e) {
      sum_ += cosine_of(a, e);
      ++samples_;
    });
  }
  double value() const override {
    return samples_ == 0 ? kNothing : sum_ / static_cast<double>(samples_);
  }

 private:
  double sum_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace

MetricEntry cosine() {
  return {{"cosine", "cosine similarity with the reference, mean over samples", false, true},
          []() -> std::unique_ptr<Metric> { return std::make_unique<Cosine>(); },
          is_comparable};
}

}  // namespace quench::metrics
