// SPDX-License-Identifier: Apache-2.0
// The range whose scale makes the least squared error on the values seen.
#include <array>
#include <cmath>

#include "observe/distribution.h"
#include "observe/observer.h"

namespace quench::observe {
namespace {

/// How far each end is drawn in: range = {low * min, high * max}.
struct Point {
  double low;
  double high;
  double error;
};

class Search {
 public:
  Search(const Statistic& statistic, const QuantSpec& spec)
      : distribution_(statistic), spec_(spec), whole_(whole_range(statistic, spec)) {
    spec_.observer.clear();
    best_ = look(1, 1);
  }

  Range best() const { return {best_.low * whole_.min, best_.high * whole_.max}; }

  /// Both ends drawn in alike: symmetric scales and values on one side of zero.
  void together() {
    double ratio = std::exp2(-0.125);
    for (int k = 1; k <= 64; ++k) take(look(std::pow(ratio, k), std::pow(ratio, k)));
    for (int round = 0; round < 3; ++round) {
      ratio = std::pow(ratio, 0.25);
      const double middle = best_.low;
      for (int k = -3; k <= 3; ++k) {
        const double factor = std::min(1.0, middle * std::pow(ratio, k));
        if (k != 0) take(look(factor, factor));
      }
    }
  }

  /// Each end on its own: a coarse net, then ever smaller steps from its best knot.
  void apart() {
    constexpr int kKnots = 13;
    std::array<double, kKnots> factors{};
    for (int k = 0; k + 1 < kKnots; ++k) {
      factors[static_cast<std::size_t>(k)] = std::exp2(-k / 3.0);
    }
    for (const double low : factors) {
      for (const double high : factors) take(look(low, high));
    }
    for (double exponent = 1.0 / 6; exponent > 0.004; exponent /= 2) {
      for (int turn = 0; turn < 4 && step(std::exp2(exponent)); ++turn) {
      }
    }
  }

 private:
  Point look(double low, double high) const {
    const Range range{low * whole_.min, high * whole_.max};
    return {low, high, distribution_.mean_squared_error(step_params(spec_, range))};
  }

  bool take(const Point& point) {
    if (!(point.error < best_.error)) return false;
    best_ = point;
    return true;
  }

  /// Tries the eight neighbours of the best point.
  bool step(double ratio) {
    const std::array<double, 3> factors{1 / ratio, 1, ratio};
    const Point from = best_;
    bool better = false;
    for (const double low : factors) {
      for (const double high : factors) {
        better |= take(look(std::min(1.0, from.low * low), std::min(1.0, from.high * high)));
      }
    }
    return better;
  }

  Distribution distribution_;
  QuantSpec spec_;
  Range whole_;
  Point best_{};
};

Range range(const Statistic& statistic, const QuantSpec& spec) {
  if (statistic.count == 0 || statistic.abs_max() == 0) return {};
  Search search(statistic, spec);
  if (has_two_ends(statistic, spec)) {
    search.apart();
  } else {
    search.together();
  }
  return search.best();
}

}  // namespace

ObserverInfo mse() {
  return {"mse", "MSE", "the range whose scale makes the least mean squared error", range};
}

}  // namespace quench::observe
