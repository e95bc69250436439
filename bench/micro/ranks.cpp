// SPDX-License-Identifier: Apache-2.0
// What it costs that ranks tell each other their statistics: ranks as processes of this machine,
// a map of statistics each, joined to one on all of them. With a model, the statistics are those of
// a pass over samples of noise, each rank its share, and the cost is told as a part of the pass.
// Usage: quench_bench_ranks [ranks [values | model.onnx [samples]]]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "base/share.h"
#include "calibrate/tally.h"
#include "observe/statistics_bytes.h"
#include "quench/ptq.h"

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

/// What the ranks are to tell each other.
struct Task {
  int values = 100;
  std::string model;  ///< empty: made-up statistics
  std::int64_t samples = 256;
};

/// Of this process, all threads.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The statistics of this rank's share of the samples, and the processor time of its pass.
std::pair<StatisticMap, double> pass(const Task& task, int rank, int size) {
  Context context;
  context.threads = 1;
  ObservedModel observed = PTQ({}, context).quantize(load(task.model));
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  TensorMap feeds;
  for (const Value& input : observed.inputs()) {
    Shape shape;
    for (const Dim& dim : *input.type.shape) shape.push_back(dim.known() ? dim.value : 1);
    Tensor tensor = Tensor::zeros(DType::Float32, shape);
    for (float& each : tensor.mutable_data<float>()) each = normal(random);
    feeds[input.name] = std::move(tensor);
  }
  const double before = cpu_seconds();
  for (std::int64_t i = rank; i < task.samples; i += size) observed.run(feeds);
  return {observed.statistics(), cpu_seconds() - before};
}

/// The sum over all ranks, on rank 0.
double sum_of(Ranks& ranks, double own) {
  join_up(
      ranks, "seconds",
      [&] {
        Packer packer;
        packer.put_all(std::vector{own});
        return packer.take();
      },
      [&](const Bytes& part) { own += Unpacker(part).all<double>().front(); });
  return own;
}

void run(int rank, int size, int port, const Task& task) {
  const auto begin = Clock::now();
  RankOptions options;
  options.rank = rank;
  options.size = size;
  options.port = port;
  const auto ranks = join_ranks(options);
  const double joined = milliseconds(begin);
  double passed = 0;
  StatisticMap own;
  if (task.model.empty()) {
    own = statistics(task.values, rank);
  } else {
    std::tie(own, passed) = pass(task, rank, size);
  }
  const auto values = static_cast<double>(own.size());
  constexpr int kRounds = 20;
  std::vector<double> times;
  ranks->agree("the pass", "done");
  const double before = cpu_seconds();
  for (int i = 0; i < kRounds; ++i) {
    ranks->agree("the round", std::to_string(i));  // so that all begin together
    StatisticMap mine = own;
    const auto start = Clock::now();
    join_up(
        *ranks, "bench", [&] { return observe::to_message(mine); },
        [&](const Bytes& part) { calibrate::append(mine, observe::from_message(part)); });
    (void)broadcast(*ranks, "bench", rank == 0 ? observe::to_message(mine) : Bytes());
    times.push_back(milliseconds(start));
  }
  const double spent = sum_of(*ranks, (cpu_seconds() - before) / kRounds);
  const double whole = sum_of(*ranks, passed);
  std::ranges::sort(times);
  if (rank == 0) {
    std::printf(
        "ranks %d, values %.0f, %.0f bytes of each rank (%.0f a value)\n"
        "meeting once (loading the engine included): %.0f ms\n"
        "joining and handing back: median %.1f ms, least %.1f, most %.1f\n",
        size, values, static_cast<double>(observe::to_message(own).size()),
        static_cast<double>(observe::to_message(own).size()) / values, joined,
        times[times.size() / 2], times.front(), times.back());
    std::printf("processor time of all ranks: %.0f ms", 1000 * spent);
    if (whole > 0) {
      std::printf(", %.1f %% of a pass over %lld samples (%.1f s)", 100 * spent / whole,
                  static_cast<long long>(task.samples), whole);
    }
    std::printf("\n");
  }
  ranks->leave();
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 4;
  Task task;
  if (argc > 2) task.values = std::atoi(argv[2]);
  if (argc > 2 && task.values == 0) task.model = argv[2];
  if (argc > 3) task.samples = std::atoll(argv[3]);
  const int port = 20000 + ::getpid() % 20000;
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    try {
      run(rank, size, port, task);
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
