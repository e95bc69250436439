// SPDX-License-Identifier: Apache-2.0
// Sums whose order does not matter, and the moving average, which keeps it.
#include <algorithm>
#include <cmath>

#include "quench/statistics.h"

namespace quench {
namespace {

constexpr int kLimbBits = 32;
constexpr int kLowestBit = -320;  // squares of the smallest float32 begin at 2^-298
constexpr std::uint64_t kMask = 0xffffffff;
constexpr int kMantissa = 53;

}  // namespace

void ExactSum::add(double value) noexcept {
  if (value == 0 || !std::isfinite(value)) return;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, kMantissa));
  int position = exponent - kMantissa - kLowestBit;
  if (position < 0) {
    mantissa = position > -kMantissa ? mantissa >> -position : 0;
    position = 0;
  }
  const int limb = position / kLimbBits;
  if (limb + 2 >= kLimbs) return;  // beyond any sum of float32 squares
  const int shift = position % kLimbBits;
  const std::uint64_t low = (mantissa & kMask) << shift;
  const std::uint64_t high = (mantissa >> kLimbBits) << shift;
  const std::int64_t sign = value < 0 ? -1 : 1;
  std::int64_t* at = limbs_.data() + limb;
  at[0] += sign * static_cast<std::int64_t>(low & kMask);
  at[1] += sign * static_cast<std::int64_t>((low >> kLimbBits) + (high & kMask));
  at[2] += sign * static_cast<std::int64_t>(high >> kLimbBits);
  carry();
}

void ExactSum::add(const ExactSum& other) noexcept {
  for (std::size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += other.limbs_[i];
  carry();
}

void ExactSum::set_limbs(const std::array<std::int64_t, kLimbs>& limbs) noexcept {
  limbs_ = limbs;
  for (std::size_t i = 0; i + 1 < limbs_.size(); ++i) limbs_[i] &= static_cast<std::int64_t>(kMask);
}

// One value has one form: every limb but the last is in [0, 2^32).
void ExactSum::carry() noexcept {
  for (std::size_t i = 0; i + 1 < limbs_.size(); ++i) {
    limbs_[i + 1] += limbs_[i] >> kLimbBits;
    limbs_[i] &= static_cast<std::int64_t>(kMask);
  }
}

double ExactSum::value() const noexcept {
  if (limbs_.back() < 0) {
    ExactSum negated;
    for (std::size_t i = 0; i < limbs_.size(); ++i) negated.limbs_[i] = -limbs_[i];
    negated.carry();
    return -negated.value();
  }
  double sum = 0;
  for (std::size_t i = limbs_.size(); i-- > 0;) {
    if (limbs_[i] == 0) continue;
    sum += std::ldexp(static_cast<double>(limbs_[i]), static_cast<int>(i) * kLimbBits + kLowestBit);
  }
  return sum;
}

void MovingAverage::add(const Entry& entry) {
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry), entry);
  if (entries_.size() > kKept) entries_.erase(entries_.begin());
}

void MovingAverage::merge(const MovingAverage& other) {
  std::vector<Entry> all(entries_.size() + other.entries_.size());
  std::ranges::merge(entries_, other.entries_, all.begin());
  if (all.size() > kKept) all.erase(all.begin(), all.end() - kKept);
  entries_ = std::move(all);
}

double MovingAverage::value() const noexcept {
  constexpr double kDecay = 0.9;
  double sum = 0;
  double weights = 0;
  for (const Entry& entry : entries_) {
    sum = kDecay * sum + static_cast<double>(entry.value);
    weights = kDecay * weights + 1;
  }
  return weights > 0 ? sum / weights : 0;
}

}  // namespace quench
