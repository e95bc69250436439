// SPDX-License-Identifier: Apache-2.0
// quench_bench_ranges STATISTICS: times the choice of a range for every tensor of a file of
// `quench calibrate`, with KL, mse, emd and hist one after the other, on one thread.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "quench/statistics.h"

namespace {

int measure(const std::string& path) {
  const quench::StatisticMap statistics = quench::load_statistics(path, nullptr);
  std::printf("{\"tensors\": %zu", statistics.size());
  double total = 0;
  double widest = 0;
  for (const char* name : {"KL", "mse", "emd", "hist"}) {
    const quench::ObserverInfo& observer = quench::find_observer(name);
    const quench::QuantSpec spec{.is_signed = false, .symmetric = false, .observer = name};
    const auto start = std::chrono::steady_clock::now();
    for (const auto& [tensor, statistic] : statistics) {
      const quench::Range range = observer.range(statistic, spec);
      widest = range.max > widest ? range.max : widest;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf(", \"%s\": %.4f", name, taken.count());
    total += taken.count();
  }
  std::printf(", \"seconds\": %.4f, \"widest\": %g}\n", total, widest);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: quench_bench_ranges STATISTICS\n");
    return 2;
  }
  try {
    return measure(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
