// SPDX-License-Identifier: Apache-2.0
// What a scale does to the values a statistic has seen, without the values.
#pragma once

#include <vector>

#include "quench/statistics.h"

namespace quench::observe {

/// A scale in steps from zero: value = k * step for k in [low, high].
struct StepParams {
  double step;
  double low;
  double high;
};
StepParams step_params(const QuantParams& params);
/// The scale that `choose_params` gives for one range.
StepParams step_params(const QuantSpec& spec, const Range& range);

/// Values taken as spread evenly over each bin, between the extremes; exact zeros apart. Errors are
/// integrals of the scale's sawtooth over those bins, so that bins need not be finer than steps.
class Distribution {
 public:
  explicit Distribution(const Statistic& statistic);
  /// Mean squared error; 0 when nothing was seen.
  double mean_squared_error(const StepParams& params) const;

  struct Moments {
    double mean;
    double mean_square;
  };
  /// Of the values after quantising and dequantising.
  Moments moments(const StepParams& params) const;

 private:
  void add_bin(double begin, double end, double values);

  // The density as steps up and down at edges: an integral is a sum of antiderivatives there.
  std::vector<double> edges_;
  std::vector<double> rises_;
  std::vector<double> points_;  // values of bins that have no width
  std::vector<double> masses_;
  double count_ = 0;
};

}  // namespace quench::observe
