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

/// Sums of part of a tensor, in lanes, so that additions need not wait for each other and the
/// compiler can make them at once.
constexpr std::size_t kLanes = 8;
struct Moments {
  std::array<double, kLanes> sum{}, squares{};
  std::array<float, kLanes> low{}, high{};
  std::array<std::uint32_t, kLanes> zeros{};

  explicit Moments(float first) {
    low.fill(first);
    high.fill(first);
  }
  void add(const float* values, std::size_t count, double from) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      const float value = values[lane];
      const double away = static_cast<double>(value) - from;
      sum[lane] += away;
      squares[lane] += away * away;
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
      zeros[lane] += value == 0 ? 1U : 0U;
    }
  }
};

template <typename Lanes>
double total(const Lanes& lanes) {
  double sum = 0;
  for (const auto lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

/// Calls `body(offset, count)` with whole lanes, and once with what is left.
template <typename Body>
void in_lanes(std::size_t size, const Body& body) {
  std::size_t at = 0;
  for (; at + kLanes <= size; at += kLanes) body(at, kLanes);
  if (at < size) body(at, size - at);
}

}  // namespace

TensorSummary summary_of(std::span<const float> values) {
  TensorSummary result;
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  // Around the first value: squares of what is far from 0 would lose the variance.
  const auto from = static_cast<double>(std::isfinite(values[0]) ? values[0] : 0.0F);
  Moments moments(values[0]);
  in_lanes(values.size(), [&](std::size_t at, std::size_t count) {
    moments.add(values.data() + at, count, from);
  });
  const double mean = total(moments.sum) / n;
  result.min = static_cast<double>(*std::ranges::min_element(moments.low));
  result.max = static_cast<double>(*std::ranges::max_element(moments.high));
  result.mean = from + mean;
  result.variance = std::max(0.0, total(moments.squares) / n - mean * mean);
  result.zeros = total(moments.zeros) / n;
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
  std::array<double, kLanes> dots{}, firsts{}, seconds{};
  std::array<std::uint32_t, kLanes> outside{};
  in_lanes(real.size(), [&](std::size_t at, std::size_t count) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      const float value = real[at + lane];
      const auto x = static_cast<double>(value);
      const auto y = static_cast<double>(quantized[at + lane]);
      dots[lane] += x * y;
      firsts[lane] += x * x;
      seconds[lane] += y * y;
      outside[lane] += value < low || value > high ? 1U : 0U;
    }
  });
  const double aa = total(firsts);
  const double bb = total(seconds);
  TensorDistance result{.clipped = total(outside) / static_cast<double>(real.size())};
  if (aa < kNothing && bb < kNothing) return result;
  const double cosine = aa * bb < kNothing ? 0 : total(dots) / std::sqrt(aa * bb);
  result.cosine = std::isfinite(cosine) ? cosine : 0;
  return result;
}

}  // namespace quench::report
