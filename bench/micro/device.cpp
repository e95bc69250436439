// SPDX-License-Identifier: Apache-2.0
// quench_bench_device MODEL BATCH DEVICE PRECISION [ROUNDS]: images a second of a plain run and of
// a calibration pass with all statistics, from images that lie where the model runs, as JSON; and
// how far the statistics are from those that the CPU counts of the very same activations.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "noise.h"
#include "quench/ptq.h"

namespace {

using Clock = std::chrono::steady_clock;
using quench::Tensor;
using quench::TensorMap;
using quench::benchmarks::noise;

/// The median of `rounds` runs, each of which ends when its outputs are here.
template <typename Run>
double images_a_second(std::int64_t batch, int rounds, const Run& run) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {  // kernels are chosen, weights are brought
    const auto start = Clock::now();
    run();
    if (i >= 3) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(times);
  return static_cast<double>(batch) / times[times.size() / 2];
}

/// Values whose counts differ from what the CPU counts, and the largest difference of sums.
void compare(quench::ObservedModel& observed, const TensorMap& feeds,
             const quench::Context& context) {
  quench::SessionOptions options;
  const quench::StatisticMap seen = observed.statistics();
  for (const auto& [name, statistic] : seen) options.taps.push_back(name);
  options.integer = false;
  quench::Session session(observed.model(), options, context);
  const TensorMap values = session.run(feeds, options.taps);
  int differ = 0;
  double off = 0;
  for (const auto& [name, statistic] : seen) {
    const Tensor& value = values.at(name);
    quench::Statistic here;
    const auto samples = static_cast<std::size_t>(value.shape().at(0));
    const auto all = value.data<float>();
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t size = all.size() / samples;
      here.add_sample(all.subspan(i * size, size));
    }
    const bool same = here.bins == statistic.bins && here.first_bin == statistic.first_bin &&
                      here.bin_width == statistic.bin_width && here.zeros == statistic.zeros &&
                      here.count == statistic.count && here.min == statistic.min &&
                      here.max == statistic.max && here.sum_low == statistic.sum_low &&
                      here.sum_high == statistic.sum_high &&
                      here.moving_abs_max == statistic.moving_abs_max &&
                      here.nans == statistic.nans && here.infinities == statistic.infinities;
    differ += same ? 0 : 1;
    if (!same) std::printf("  differs: %s\n", name.c_str());
    const double squares = here.sum_squares.value();
    off = std::max(off, std::fabs(squares - statistic.sum_squares.value()) / (squares + 1e-30));
  }
  std::printf("  \"values\": %zu, \"counts that differ\": %d, \"sums differ by\": %.3g}\n",
              seen.size(), differ, off);
}

int measure(int count, char** words) {
  const std::int64_t batch = std::atoll(words[2]);
  quench::Context context;
  context.device = words[3];
  context.precision = words[4];
  context.log = [](quench::LogLevel level, std::string_view line) {
    if (level == quench::LogLevel::Warning) {
      std::fprintf(stderr, "warning: %.*s\n", static_cast<int>(line.size()), line.data());
    }
  };
  const int rounds = count > 5 ? std::atoi(words[5]) : 20;
  const quench::PTQ ptq({}, context);
  quench::ObservedModel observed = ptq.quantize(quench::load(words[1]));
  const TensorMap feeds = noise(observed.inputs(), batch);
  quench::Session plain(observed.model(), {.integer = false}, context);
  const auto entered = plain.enter(feeds);
  const double without =
      images_a_second(batch, rounds, [&] { (void)plain.leave(plain.compute(entered)); });
  std::printf("{\"plain\": %.0f,", without);
  std::fflush(stdout);
  const double with = images_a_second(batch, rounds, [&] { (void)observed.run(entered); });
  std::printf(" \"calibrating\": %.0f, \"ratio\": %.3f,\n", with, with / without);
  const std::int64_t few = std::min<std::int64_t>(batch, 16);
  const TensorMap part = noise(observed.inputs(), few);
  quench::ObservedModel fresh = ptq.quantize(quench::load(words[1]));
  (void)fresh.run(part);
  compare(fresh, part, context);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s MODEL BATCH DEVICE PRECISION [ROUNDS]\n", argv[0]);
    return 2;
  }
  try {
    return measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
