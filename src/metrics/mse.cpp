// SPDX-License-Identifier: Apache-2.0
// Mean squared error.
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

class Mse final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    with_elements(actual, expected, [this](auto a, auto e) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (equally_special(a[i], e[i])) continue;
        const double error = static_cast<double>(a[i]) - static_cast<double>(e[i]);
        sum += error * error;
      }
      sum_ += sum;
      elements_ += a.size();
    });
  }
  double value() const override {
    if (elements_ == 0) return kNothing;
    return std::isnan(sum_) ? kInfinity : sum_ / static_cast<double>(elements_);
  }

 private:
  double sum_ = 0;
  std::size_t elements_ = 0;
};

}  // namespace

MetricEntry mse() {
  return {{"mse", "mean squared error against the reference, over all elements", false, false},
          []() -> std::unique_ptr<Metric> { return std::make_unique<Mse>(); }};
}

}  // namespace quench::metrics
