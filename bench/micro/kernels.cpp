// SPDX-License-Identifier: Apache-2.0
// Times every fast kernel on every instruction set that this machine has, after a check.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "contract/fast_kernels/problem.h"

namespace {

using namespace quench;
using Clock = std::chrono::steady_clock;

double microseconds(const fast::Problem& problem) {
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int kCalls = 50;
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) problem.run();
    best = std::min(
        best, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls);
  }
  return best;
}

bool is_right(const fast::Problem& problem) {
  problem.run();
  const auto got = problem.got();
  const auto wanted = problem.wanted();
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double limit = problem.absolute + problem.relative * std::abs(wanted[i]);
    if (!(std::abs(got[i] - wanted[i]) <= limit)) return false;
  }
  return true;
}

}  // namespace

int main() {
  std::printf("%-20s", "us a call");
  for (const Isa isa : all_isas()) std::printf("%10s", std::string(to_string(isa)).c_str());
  std::printf("\n");
  for (const fast::FastKernel& kernel : fast::fast_kernels()) {
    std::printf("%-20s", std::string(kernel.name).c_str());
    for (const Isa isa : all_isas()) {
      if (isa < kernel.least || isa > machine_isa()) {
        std::printf("%10s", "-");
        continue;
      }
      set_max_isa(isa);
      fast::Random random(1);
      const fast::Problem problem = kernel.make(random, fast::Size::Large);
      if (!is_right(problem)) {
        std::printf("\n%s is wrong on %s\n", std::string(kernel.name).c_str(),
                    std::string(to_string(isa)).c_str());
        return 1;
      }
      std::printf("%10.2f", microseconds(problem));
    }
    std::printf("\n");
  }
  return 0;
}
