// SPDX-License-Identifier: Apache-2.0
// Times a calibration pass beside a plain float one on the same batches, in turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "noise.h"
#include "quench/ptq.h"

namespace {

using Clock = std::chrono::steady_clock;
using quench::TensorMap;
using quench::benchmarks::noise;

template <typename Run>
double milliseconds(const Run& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int measure(const std::string& path, std::int64_t batch, int rounds) {
  const quench::Model model = quench::load(path);
  quench::ObservedModel observed = quench::PTQ().quantize(model);
  quench::Session plain(observed.model());
  const TensorMap feeds = noise(observed.inputs(), batch);
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < rounds + 2; ++i) {
    const double one = milliseconds([&] { plain.run(feeds); });
    const double other = milliseconds([&] { observed.run(feeds); });
    if (i < 2) continue;  // weights are packed and memory is fetched
    without.push_back(one);
    with.push_back(other);
  }
  std::printf("{\"batch\": %lld, \"plain_ms\": %.3f, \"calibrating_ms\": %.3f, \"ratio\": %.3f}\n",
              static_cast<long long>(batch), median(without), median(with),
              median(with) / median(without));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: quench_bench_calibration MODEL [BATCH [ROUNDS]]\n");
    return 2;
  }
  try {
    return measure(argv[1], argc > 2 ? std::atoll(argv[2]) : 8, argc > 3 ? std::atoi(argv[3]) : 15);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
