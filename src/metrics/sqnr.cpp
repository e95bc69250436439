// SPDX-License-Identifier: Apache-2.0
// Signal to quantisation noise ratio.
#include "metrics/metric.h"

namespace quench::metrics {
namespace {

class Sqnr final : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) override {
    with_elements(actual, expected, [this](auto a, auto e) {
      double signal = 0;
      double noise = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (equally_special(a[i], e[i])) continue;
        const double wanted = e[i];
        const double error = static_cast<double>(a[i]) - wanted;
        signal += wanted * wanted;
        noise += error * error;
      }
      signal_ += signal;
      noise_ += noise;
      elements_ += a.size();
    });
  }
  double value() const override {
    if (elements_ == 0) return kNothing;
    if (!std::isfinite(noise_) || !std::isfinite(signal_)) return -kInfinity;
    if (noise_ == 0) return kInfinity;
    return 10.0 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0;
  double noise_ = 0;
  std::size_t elements_ = 0;
};

}  // namespace

MetricEntry sqnr() {
  return {{"sqnr", "signal to noise ratio against the reference in dB, over all elements", false,
           true, Gather::Power},
          []() -> std::unique_ptr<Metric> { return std::make_unique<Sqnr>(); },
          is_comparable};
}

}  // namespace quench::metrics
