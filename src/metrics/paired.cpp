// SPDX-License-Identifier: Apache-2.0
// SQNRs without one sample, and what they tell of the whole.
#include "metrics/paired.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quench::metrics {
namespace {

/// What is nearer than this is as good as equal; it also keeps differences finite.
constexpr double kMostDecibels = 200;

SampleNoise sum_without(const OutputNoise& output, std::size_t skipped) {
  SampleNoise sum;
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (i == skipped) continue;
    sum.signal += output[i].signal;
    sum.noise += output[i].noise;
    sum.peak_signal += output[i].peak_signal;
    sum.peak_noise += output[i].peak_noise;
  }
  return sum;
}

double decibels(double signal, double noise) {
  if (!std::isfinite(noise) || !std::isfinite(signal)) return -kMostDecibels;
  if (noise <= 0) return kMostDecibels;
  if (signal <= 0) return -kMostDecibels;
  return std::clamp(10 * std::log10(signal / noise), -kMostDecibels, kMostDecibels);
}

}  // namespace

double sqnr_without(const OutputNoise& output, std::size_t skipped) {
  const SampleNoise sum = sum_without(output, skipped);
  return decibels(sum.signal, sum.noise);
}

double nearness_without(const OutputNoise& output, std::size_t skipped) {
  const SampleNoise sum = sum_without(output, skipped);
  const double all = decibels(sum.signal, sum.noise);
  return sum.peak_signal > 0 ? std::min(all, decibels(sum.peak_signal, sum.peak_noise)) : all;
}

Difference paired(std::size_t samples,
                  const std::function<double(std::size_t skipped)>& difference) {
  Difference result{.db = difference(samples)};
  if (samples < 2) return result;
  std::vector<double> without(samples);
  for (std::size_t i = 0; i < samples; ++i) without[i] = difference(i);
  const auto count = static_cast<double>(samples);
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / count;
  double square = 0;
  for (const double each : without) square += (each - mean) * (each - mean);
  result.error = std::sqrt((count - 1) / count * square);
  return result;
}

}  // namespace quench::metrics
