// SPDX-License-Identifier: Apache-2.0
// A metric of the caller's own: what was seen is kept, and handed over at the end.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "metrics/metric.h"

namespace quench {
namespace {

/// Tensors one behind the other, along the first dimension.
Tensor stacked(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts.front();
  Shape shape = parts.front().shape();
  if (shape.empty()) shape = {1};
  shape.front() = 0;
  for (const Tensor& part : parts) {
    Shape rest = part.rank() == 0 ? Shape{1} : part.shape();
    shape.front() += rest.front();
    rest.front() = shape.front();
    if (rest != shape || part.dtype() != parts.front().dtype()) {
      fail(ErrorKind::BadData, "results of shape {} and {} cannot be put together for a metric",
           to_string(parts.front().shape()), to_string(part.shape()));
    }
  }
  Tensor all = Tensor::zeros(parts.front().dtype(), shape);
  std::span<std::byte> rest = all.mutable_bytes();
  for (const Tensor& part : parts) {
    std::ranges::copy(part.bytes(), rest.begin());
    rest = rest.subspan(part.bytes().size());
  }
  return all;
}

class Gathered final : public Metric {
 public:
  explicit Gathered(CustomMetric metric) : metric_(std::move(metric)) {}
  void add(const Tensor& actual, const Tensor& expected) override {
    actual_.push_back(actual);
    expected_.push_back(expected);
  }
  double value() const override {
    if (actual_.empty()) return metrics::kNothing;
    const double value = metric_.value(stacked(actual_), stacked(expected_));
    if (std::isnan(value)) {
      fail(ErrorKind::BadData, "the metric '{}' gave NaN; it must give a number", metric_.name);
    }
    return value;
  }

 private:
  CustomMetric metric_;
  std::vector<Tensor> actual_;
  std::vector<Tensor> expected_;
};

}  // namespace

std::unique_ptr<Metric> make_metric(const CustomMetric& metric) {
  return std::make_unique<Gathered>(metric);
}

}  // namespace quench
