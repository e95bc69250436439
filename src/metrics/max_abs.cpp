// SPDX-License-Identifier: Apache-2.0
// The largest absolute error.
#include <algorithm>

#include "metrics/metric.h"

namespace quench::metrics {
namespace {

class MaxAbs final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    with_elements(actual, expected, [this](auto a, auto e) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (equally_special(a[i], e[i])) continue;
        const double error = std::abs(static_cast<double>(a[i]) - static_cast<double>(e[i]));
        largest_ = std::max(largest_, std::isnan(error) ? kInfinity : error);
      }
      elements_ += a.size();
    });
  }
  double value() const override { return elements_ == 0 ? kNothing : largest_; }

 private:
  double largest_ = 0;
  std::size_t elements_ = 0;
};

}  // namespace

MetricEntry max_abs() {
  return {{"max_abs", "largest absolute error against the reference", false, false, Gather::Max},
          []() -> std::unique_ptr<Metric> { return std::make_unique<MaxAbs>(); }};
}

}  // namespace quench::metrics
