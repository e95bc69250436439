// SPDX-License-Identifier: Apache-2.0
// Finds and scores the values of an output that are far from the usual.
#include "metrics/peaks.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "metrics/metric.h"

namespace quench::metrics {
namespace {

/// One value in so many is a peak.
constexpr std::size_t kRarity = 100;
/// The error of fewer values says little; and of values that are no more than some times as many,
/// so many are not rare.
constexpr std::size_t kLeast = 32;
constexpr std::size_t kLeastShare = 4;

/// The element that would be at `rank` in sorted order.
float ranked(std::vector<float>& values, std::size_t rank) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

std::optional<Peaks> find_peaks(const std::vector<TensorMap>& runs, const std::string& output) {
  std::vector<float> values;
  for (const TensorMap& run : runs) {
    const std::vector<float> part = to_float(run.at(output));
    std::ranges::copy_if(part, std::back_inserter(values),
                         [](float x) { return std::isfinite(x); });
  }
  const std::size_t count = std::max(kLeast, values.size() / kRarity);
  if (values.size() < kLeastShare * count) return std::nullopt;
  Peaks peaks;
  peaks.usual = ranked(values, values.size() / 2);
  for (float& value : values) value = std::abs(value - peaks.usual);
  peaks.distance = ranked(values, values.size() - count);
  if (!(peaks.distance > 0)) return std::nullopt;
  return peaks;
}

void PeakScore::add(const Tensor& actual, const Tensor& expected) {
  with_elements(actual, expected, [this](auto a, auto e) {
    for (std::size_t i = 0; i < e.size(); ++i) {
      const float distance = std::abs(static_cast<float>(e[i]) - peaks_.usual);
      if (!std::isfinite(distance) || distance < peaks_.distance) continue;
      const double error = static_cast<double>(a[i]) - static_cast<double>(e[i]);
      signal_ += static_cast<double>(distance) * static_cast<double>(distance);
      noise_ += error * error;
    }
  });
}

double PeakScore::value() const {
  if (!std::isfinite(noise_)) return -std::numeric_limits<double>::infinity();
  if (noise_ == 0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal_ / noise_);
}

}  // namespace quench::metrics
