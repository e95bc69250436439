// SPDX-License-Identifier: Apache-2.0
// What a scale does to the values a statistic has seen, without the values.
#include "observe/distribution.h"

#include <algorithm>
#include <array>

#include "base/cpu.h"

namespace quench::observe {
namespace {

constexpr std::size_t kLanes = 8;
// Rounds to nearest even when added and taken away, on every instruction set.
constexpr double kRounder = 6755399441055744.0;

inline double nearest_step(double steps, const StepParams& params) {
  steps = steps < params.low ? params.low : steps;
  steps = steps > params.high ? params.high : steps;
  return (steps + kRounder) - kRounder;
}

/// Antiderivative of (u - nearest(u))^2, in steps. Beyond the ends it goes on as the clipping
/// error.
inline double error_integral(double edge, double inverse, const StepParams& params) {
  const double steps = edge * inverse;
  const double k = nearest_step(steps, params);
  const double rest = steps - k;
  return k * (1.0 / 12.0) + rest * rest * rest * (1.0 / 3.0);
}

QUENCH_MULTIVERSION(double, error_sum,
                    (const double* __restrict edges, const double* __restrict rises,
                     std::size_t count, const StepParams& given),
                    (edges, rises, count, given)) {
  const StepParams params = given;
  const double inverse = 1.0 / params.step;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += rises[i + lane] * error_integral(edges[i + lane], inverse, params);
    }
  }
  double sum = 0;
  for (; i < count; ++i) sum += rises[i] * error_integral(edges[i], inverse, params);
  for (const double lane : lanes) sum += lane;
  return sum * params.step * params.step * params.step;
}

}  // namespace

StepParams step_params(const QuantParams& params) {
  const auto zero = static_cast<double>(params.zero_point.front());
  return {static_cast<double>(params.scale.front()),
          static_cast<double>(params.spec.q_min()) - zero,
          static_cast<double>(params.spec.q_max()) - zero};
}

StepParams step_params(const QuantSpec& spec, const Range& range) {
  QuantSpec whole = spec;
  whole.axis = -1;
  return step_params(choose_params(whole, {range}));
}

Distribution::Distribution(const Statistic& statistic)
    : count_(static_cast<double>(statistic.count)) {
  for (std::size_t i = 0; i < statistic.bins.size(); ++i) {
    const std::int64_t bin = statistic.first_bin + static_cast<std::int64_t>(i);
    const std::int64_t values = statistic.bins[i] - (bin == 0 ? statistic.zeros : 0);
    if (values <= 0) continue;
    const double begin = static_cast<double>(bin) * statistic.bin_width;
    add_bin(std::max(begin, statistic.min), std::min(begin + statistic.bin_width, statistic.max),
            static_cast<double>(values));
  }
}

void Distribution::add_bin(double begin, double end, double values) {
  constexpr double kNoWidth = 1e-12;
  if (end - begin <= kNoWidth * std::max(std::abs(begin), std::abs(end))) {
    points_.push_back(begin);
    masses_.push_back(values);
    return;
  }
  const double density = values / (end - begin);
  if (!edges_.empty() && edges_.back() == begin) {
    rises_.back() -= density;
  } else {
    edges_.push_back(begin);
    rises_.push_back(-density);
  }
  edges_.push_back(end);
  rises_.push_back(density);
}

double Distribution::mean_squared_error(const StepParams& params) const {
  if (count_ == 0) return 0;
  double sum = error_sum(edges_.data(), rises_.data(), edges_.size(), params);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double error = points_[i] - nearest_step(points_[i] / params.step, params) * params.step;
    sum += masses_[i] * error * error;
  }
  return std::max(0.0, sum / count_);
}

Distribution::Moments Distribution::moments(const StepParams& params) const {
  if (count_ == 0) return {0, 0};
  double first = 0;
  double second = 0;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const double steps = edges_[i] / params.step;
    const double k = nearest_step(steps, params);
    const double rest = steps - k;
    first += rises_[i] * (k * rest + k * k / 2);
    second += rises_[i] * (k * k * k / 3 + k / 6 + k * k * rest);
  }
  first *= params.step * params.step;
  second *= params.step * params.step * params.step;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double value = nearest_step(points_[i] / params.step, params) * params.step;
    first += masses_[i] * value;
    second += masses_[i] * value * value;
  }
  return {first / count_, second / count_};
}

}  // namespace quench::observe

namespace quench {

double expected_error(const Statistic& statistic, const QuantParams& params) {
  return observe::Distribution(statistic).mean_squared_error(observe::step_params(params));
}

}  // namespace quench
