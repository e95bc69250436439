// SPDX-License-Identifier: Apache-2.0
// Measures what calibration costs a value, and what choosing ranges costs a tensor.
#include "quench/statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using quench::QuantSpec;
using quench::Statistic;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Bell-shaped values, or what a ReLU6 leaves of them.
std::vector<float> made_up(std::size_t size, bool relu) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> values(size);
  for (float& value : values) {
    value = normal(random);
    if (relu) value = std::clamp(value, 0.0f, 6.0f);
  }
  return values;
}

void measure_adding(std::size_t size, bool relu) {
  const std::vector<float> values = made_up(size, relu);
  Statistic statistic;
  statistic.add_sample(values);
  const int rounds = static_cast<int>(std::max<std::size_t>(3, 20'000'000 / size));
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) statistic.add_sample(values);
    best = std::min(best, seconds_since(start) / rounds);
  }
  std::printf(
      "{\"bench\": \"add_sample\", \"values\": %zu, \"relu\": %s, \"ns_per_value\": %.3f}\n", size,
      relu ? "true" : "false", best * 1e9 / static_cast<double>(size));
}

void measure_choosing(bool relu) {
  Statistic statistic;
  statistic.add_sample(made_up(1'000'000, relu));
  const QuantSpec spec{.is_signed = false, .symmetric = false};
  for (const auto& info : quench::all_observers()) {
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto start = Clock::now();
      info.range(statistic, spec);
      best = std::min(best, seconds_since(start));
    }
    std::printf("{\"bench\": \"%s\", \"relu\": %s, \"ms_per_tensor\": %.4f}\n",
                std::string(info.name).c_str(), relu ? "true" : "false", best * 1e3);
  }
}

}  // namespace

int main() {
  for (const bool relu : {false, true}) {
    for (const std::size_t size : {1000, 10'000, 100'000, 1'200'000}) measure_adding(size, relu);
    measure_choosing(relu);
  }
  return 0;
}
