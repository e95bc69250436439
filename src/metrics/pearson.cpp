// SPDX-License-Identifier: Apache-2.0
// Pearson's correlation with the reference, over all samples.
#include "metrics/correlation.h"

namespace quench::metrics {

bool is_one_number(const Tensor& output) {
  return output.rank() >= 1 && info(output.dtype()).is_float && output.size() == num_rows(output);
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / count;
    mean_b += b[i] / count;
  }
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : kNothing;
}

void Correlation::add(const Tensor& actual, const Tensor& expected) {
  with_elements(actual, expected, [this](auto a, auto e) {
    actual_.insert(actual_.end(), a.begin(), a.end());
    expected_.insert(expected_.end(), e.begin(), e.end());
  });
}

namespace {

class Pearson final : public Correlation {
 public:
  double value() const override { return correlation(actual_, expected_); }
};

}  // namespace

MetricEntry pearson() {
  return {.info = {"pearson",
                   "sentence pairs: Pearson's correlation with the reference over all samples",
                   false, true},
          .make = []() -> std::unique_ptr<Metric> { return std::make_unique<Pearson>(); },
          .fits = is_one_number,
          .whole = true};
}

}  // namespace quench::metrics
