// SPDX-License-Identifier: Apache-2.0
// What the correlations share: all values of an output beside the reference's.
#pragma once

#include <vector>

#include "metrics/metric.h"

namespace quench::metrics {

/// One number a sample, such as the likeness of two sentences.
bool is_one_number(const Tensor& output);
/// Pearson's r; NaN where one side does not vary.
double correlation(const std::vector<double>& a, const std::vector<double>& b);

/// Keeps all values: a rank needs them together.
class Correlation : public Metric {
 public:
  void add(const Tensor& actual, const Tensor& expected) final;

 protected:
  std::vector<double> actual_;
  std::vector<double> expected_;
};

}  // namespace quench::metrics
