// SPDX-License-Identifier: Apache-2.0
// What it costs that ranks tell each other their statistics: ranks as processes of this machine,
// a map of statistics each, joined to one on all of them. Usage: quench_bench_ranks [ranks
// [values]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/share.h"
#include "calibrate/tally.h"
#include "observe/statistics_bytes.h"

namespace {

using namespace quench;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

StatisticMap statistics(int values, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(0, 1);
  StatisticMap map;
  std::vector<float> sample(100000);
  for (int i = 0; i < values; ++i) {
    for (float& x : sample) x = normal(random);
    map["value" + std::to_string(i)].add_sample(sample);
  }
  return map;
}

void run(int rank, int size, int port, int values) {
  const auto begin = Clock::now();
  RankOptions options;
  options.rank = rank;
  options.size = size;
  options.port = port;
  const auto ranks = join_ranks(options);
  const double joined = milliseconds(begin);
  const StatisticMap own = statistics(values, rank);
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    ranks->agree("the round", std::to_string(i));  // so that all begin together
    StatisticMap mine = own;
    const auto start = Clock::now();
    join_up(
        *ranks, "bench", [&] { return observe::to_bytes(mine); },
        [&](const Bytes& part) { calibrate::append(mine, observe::from_bytes(part)); });
    (void)broadcast(*ranks, "bench", rank == 0 ? observe::to_bytes(mine) : Bytes());
    times.push_back(milliseconds(start));
  }
  std::ranges::sort(times);
  if (rank == 0) {
    std::printf(
        "ranks %d, values %d, %.0f bytes of each rank (%.0f a value)\n"
        "meeting once (loading the engine included): %.0f ms\n"
        "joining and handing back: median %.1f ms, least %.1f, most %.1f\n",
        size, values, static_cast<double>(observe::to_bytes(own).size()),
        static_cast<double>(observe::to_bytes(own).size()) / values, joined,
        times[times.size() / 2], times.front(), times.back());
  }
  ranks->leave();
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 4;
  const int values = argc > 2 ? std::atoi(argv[2]) : 100;
  const int port = 20000 + ::getpid() % 20000;
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    try {
      run(rank, size, port, values);
      std::fflush(stdout);
      std::_Exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      std::_Exit(1);
    }
  }
  int worst = 0;
  for (int status = 0; ::wait(&status) > 0;) worst = std::max(worst, status);
  return worst == 0 ? 0 : 1;
}
