// SPDX-License-Identifier: Apache-2.0
// Order statistics and moments of a tensor in linear time.
#include "report/tensor_summary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quench::report {
namespace {

/// Floats as whole numbers that sort as they do; NaN stands behind all others.
std::uint32_t key_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t mask = (bits & 0x80000000U) != 0 ? 0xFFFFFFFFU : 0x80000000U;
  return bits ^ mask;
}
float value_of(std::uint32_t key) {
  const std::uint32_t mask = (key & 0x80000000U) != 0 ? 0x80000000U : 0xFFFFFFFFU;
  return std::bit_cast<float>(key ^ mask);
}

constexpr unsigned kLowBits = 16;
constexpr std::size_t kBins = std::size_t{1} << kLowBits;

/// The values at three places of the sorted order. Sorting a network's activations takes most of
/// the time of its run; this reads them twice.
class Selection {
 public:
  explicit Selection(std::span<const float> values) : values_(values), counts_(kBins, 0) {
    for (const float value : values) ++counts_[key_of(value) >> kLowBits];
  }

  std::array<double, 3> at(const std::array<std::size_t, 3>& places) const {
    std::array<double, 3> found{};
    std::array<std::vector<std::uint32_t>, 3> members;
    std::array<std::size_t, 3> bins{};
    std::array<std::size_t, 3> before{};
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::size_t seen = 0;
      std::size_t bin = 0;
      while (seen + counts_[bin] <= places[i]) seen += counts_[bin++];
      bins[i] = bin;
      before[i] = seen;
    }
    for (const float value : values_) {
      const std::uint32_t key = key_of(value);
      const std::size_t bin = key >> kLowBits;
      for (std::size_t i = 0; i < bins.size(); ++i) {
        const bool again = i > 0 && bins[i] == bins[i - 1];
        if (bin == bins[i] && !again) members[i].push_back(key);
      }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i > 0 && bins[i] == bins[i - 1]) members[i] = members[i - 1];
      const auto wanted = members[i].begin() + static_cast<std::ptrdiff_t>(places[i] - before[i]);
      std::ranges::nth_element(members[i], wanted);
      found[i] = static_cast<double>(value_of(*wanted));
    }
    return found;
  }

 private:
  std::span<const float> values_;
  std::vector<std::uint32_t> counts_;
};

/// Three places of few values.
std::array<double, 3> sorted_at(std::span<const float> values,
                                const std::array<std::size_t, 3>& places) {
  std::vector<float> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {static_cast<double>(sorted[places[0]]), static_cast<double>(sorted[places[1]]),
          static_cast<double>(sorted[places[2]])};
}

/// Sums in several lanes, so that additions need not wait for each other.
constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;
double total(const Lanes& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

TensorSummary summary_of(std::span<const float> values) {
  TensorSummary result;
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  Lanes sums{};
  std::size_t zeros = 0;
  float low = values[0];
  float high = values[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i % kLanes] += static_cast<double>(values[i]);
    zeros += values[i] == 0 ? 1 : 0;
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  result.min = static_cast<double>(low);
  result.max = static_cast<double>(high);
  result.mean = total(sums) / n;
  result.zeros = static_cast<double>(zeros) / n;
  Lanes squares{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double away = static_cast<double>(values[i]) - result.mean;
    squares[i % kLanes] += away * away;
  }
  result.variance = total(squares) / n;
  const auto place = [&](double share) {
    return std::min(static_cast<std::size_t>(share * n), values.size() - 1);
  };
  const std::array<std::size_t, 3> places = {place(0.25), place(0.5), place(0.75)};
  constexpr std::size_t kFew = 4096;  // below this, counting bins costs more than sorting
  const auto quartiles =
      values.size() < kFew ? sorted_at(values, places) : Selection(values).at(places);
  result.q1 = quartiles[0];
  result.median = quartiles[1];
  result.q3 = quartiles[2];
  return result;
}

TensorDistance distance_of(std::span<const float> real, std::span<const float> quantized,
                           const TensorSummary& after) {
  constexpr double kNothing = 2.2e-16;
  const auto low = static_cast<float>(after.min);
  const auto high = static_cast<float>(after.max);
  Lanes dots{};
  Lanes firsts{};
  Lanes seconds{};
  std::size_t outside = 0;
  for (std::size_t i = 0; i < real.size(); ++i) {
    const auto x = static_cast<double>(real[i]);
    const auto y = static_cast<double>(quantized[i]);
    dots[i % kLanes] += x * y;
    firsts[i % kLanes] += x * x;
    seconds[i % kLanes] += y * y;
    outside += real[i] < low || real[i] > high ? 1 : 0;
  }
  const double aa = total(firsts);
  const double bb = total(seconds);
  TensorDistance result{.clipped = static_cast<double>(outside) / static_cast<double>(real.size())};
  if (aa < kNothing && bb < kNothing) return result;
  const double cosine = aa * bb < kNothing ? 0 : total(dots) / std::sqrt(aa * bb);
  result.cosine = std::isfinite(cosine) ? cosine : 0;
  return result;
}

}  // namespace quench::report
