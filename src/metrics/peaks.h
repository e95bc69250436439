// SPDX-License-Identifier: Apache-2.0
// The values of an output that are far from the usual: a detector's finds among its background.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quench/tensor.h"

namespace quench::metrics {

/// Which values of an output count as peaks.
struct Peaks {
  float usual = 0;     ///< the median
  float distance = 0;  ///< from it, at least
};

/// The hundredth of an output's values over all runs that is furthest from their median; nothing
/// where that would be too few to tell, or no rarity.
std::optional<Peaks> find_peaks(const std::vector<TensorMap>& runs, const std::string& output);

/// Signal to noise ratio in dB of the peaks alone, their signal being the distance from the usual.
class PeakScore {
 public:
  explicit PeakScore(const Peaks& peaks) : peaks_(peaks) {}
  void add(const Tensor& actual, const Tensor& expected);
  double value() const;

 private:
  Peaks peaks_;
  double signal_ = 0;
  double noise_ = 0;
};

}  // namespace quench::metrics
