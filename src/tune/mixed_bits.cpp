// SPDX-License-Identifier: Apache-2.0
// The search for a step, and the share-out of errors.
#include "tune/mixed_bits.h"

#include <algorithm>
#include <cmath>

namespace quench::tune {
namespace {

constexpr int kFewBits = 8;
constexpr int kManyBits = 16;
constexpr int kSteps = 12;
/// Errors beyond these say nothing, or cannot be reached.
constexpr double kLeastError = 1e-4;
constexpr double kGreatestError = 1;

double root_mean_square(const quant::QuantWeight& weight) {
  const auto count = static_cast<double>(std::max<std::int64_t>(1, weight.integers.size()));
  return std::sqrt(weight.signal / count);
}

/// Integers of 8 bits without zero points, for a step to be set.
quant::WeightSpec stepped(quant::WeightSpec wanted) {
  wanted.symmetric = true;
  wanted.least_error = false;
  wanted.step = 0;
  wanted.bits = kFewBits;
  return wanted;
}

}  // namespace

quant::WeightSpec coarsest_step(const Tensor& weight, const quant::WeightSpec& wanted,
                                double target, double limit, int threads) {
  quant::WeightSpec spec = stepped(wanted);
  quant::QuantWeight best = quant::quantize_weight(weight, spec, threads);
  if (best.relative_error() > limit) {
    spec.bits = kManyBits;
    best = quant::quantize_weight(weight, spec, threads);
  }
  if (best.signal == 0 || best.relative_error() > target) return best.spec;
  // For fine scales the error is step / sqrt(12): the search only has to mend that.
  double low = 0;
  double high = 4 * std::sqrt(12.0) * target * root_mean_square(best);
  double step = high / 4;
  for (int i = 0; i < kSteps; ++i) {
    spec.step = step;
    const quant::QuantWeight made = quant::quantize_weight(weight, spec, threads);
    const bool meets = made.relative_error() <= target;
    (meets ? low : high) = step;
    if (meets) best = made;
    if (meets && made.relative_error() > 0.99 * target) break;
    step = (low + high) / 2;
  }
  return best.spec;
}

quant::WeightSpec with_bits(quant::WeightSpec wanted, int bits) {
  const bool fine = bits >= kFewBits;
  wanted.bits = bits;
  wanted.symmetric = wanted.symmetric || fine;
  wanted.least_error = wanted.least_error && !fine;
  wanted.keep_mean = wanted.keep_mean && !fine;
  return wanted;
}

int WidthErrors::fewest(double target) const {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] <= target) return kWidths[i];
  }
  return kManyBits;
}

WidthErrors measure_widths(const Tensor& weight, const quant::WeightSpec& wanted, int threads) {
  WidthErrors result;
  for (const int bits : WidthErrors::kWidths) {
    result.errors.push_back(
        quant::quantize_weight(weight, with_bits(wanted, bits), threads).relative_error());
  }
  return result;
}

std::vector<double> share_out(std::span<const ErrorShare> shares, double slope) {
  std::vector<double> errors;
  for (const ErrorShare& share : shares) {
    const double squared =
        slope * static_cast<double>(share.elements) / std::max(share.sensitivity, 1e-12);
    errors.push_back(std::clamp(std::sqrt(squared), kLeastError, kGreatestError));
  }
  return errors;
}

void assume_sensitivities(std::span<ErrorShare> shares) {
  constexpr double kLeastShare = 0.25;
  std::int64_t greatest = 1;
  for (const ErrorShare& share : shares) greatest = std::max(greatest, share.elements);
  for (ErrorShare& share : shares) {
    const auto elements = static_cast<double>(share.elements);
    const double part = std::sqrt(elements / static_cast<double>(greatest));
    const double error = std::max(part, kLeastShare);
    share.sensitivity = elements / (error * error);
  }
}

quant::WeightSpec with_error(const Tensor& weight, const quant::WeightSpec& wanted, double error,
                             int threads) {
  constexpr double kMissed = 1.1;
  quant::WeightSpec spec = stepped(wanted);
  const quant::QuantWeight finest = quant::quantize_weight(weight, spec, threads);
  // Rounded, because threads add up the squares in any order.
  const double step = error * std::sqrt(12.0) * root_mean_square(finest);
  spec.step = step > 0 ? std::exp2(std::nearbyint(std::log2(step) * 1024) / 1024) : 0;
  // Channels that reach further than 127 steps have coarser scales of their own.
  const quant::QuantWeight made = quant::quantize_weight(weight, spec, threads);
  if (made.relative_error() > kMissed * error) spec.bits = kManyBits;
  return spec;
}

double fixed_width(double error) { return std::clamp(std::log2(2 / error), 2.0, 16.0); }

}  // namespace quench::tune
