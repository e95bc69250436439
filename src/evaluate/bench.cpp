// SPDX-License-Identifier: Apache-2.0
// Times a model on random inputs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/memory.h"
#include "evaluate/random_inputs.h"
#include "quench/evaluate.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void check(const BenchOptions& options) {
  if (options.batch < 1 || options.runs < 1 || options.warmup < 0) {
    fail(ErrorKind::Usage,
         "bench needs a batch and runs of at least 1 and a warmup of at least 0; "
         "got batch {}, runs {}, warmup {}",
         options.batch, options.runs, options.warmup);
  }
}

/// The steps of every run since the last `clear`. A run in slices takes them several times.
class Profile {
 public:
  void start_run() {
    for (BenchStep& step : steps_) step.ms = 0;
  }
  void add(const StepTime& time) {
    if (time.start_ms <= last_start_) next_ = 0;
    last_start_ = time.start_ms;
    if (next_ == steps_.size()) {
      steps_.push_back({.node = std::string(time.node), .op_type = std::string(time.op_type)});
    }
    BenchStep& step = steps_[next_++];
    step.ms += time.ms;
    step.mean_ms += time.ms;
  }
  void clear() {
    steps_.clear();
    next_ = 0;
    last_start_ = -1;
  }
  std::vector<BenchStep> steps(int runs) const {
    std::vector<BenchStep> result = steps_;
    double start = 0;
    for (BenchStep& step : result) {
      step.mean_ms /= runs;
      step.start_ms = std::exchange(start, start + step.ms);
    }
    return result;
  }

 private:
  std::vector<BenchStep> steps_;
  std::size_t next_ = 0;
  double last_start_ = -1;
};

std::vector<double> time_runs(Session& session, const TensorMap& feeds, const BenchOptions& options,
                              Profile& profile, const Context& context) {
  for (int i = 0; i < options.warmup; ++i) {
    context.check_cancelled();
    session.run(feeds);
  }
  profile.clear();
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.runs; ++i) {
    context.check_cancelled();
    profile.start_run();
    const Clock::time_point run_start = Clock::now();
    session.run(feeds);
    times.push_back(milliseconds_since(run_start));
    context.report("bench", i + 1, options.runs);
    if (times.size() >= 3 && milliseconds_since(start) > options.max_seconds * 1000) break;
  }
  std::sort(times.begin(), times.end());
  return times;
}

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// Nearest rank: a time that was really measured.
double percentile(const std::vector<double>& sorted, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

/// A shape that was given may fix the batch too.
std::int64_t batch_of(const std::vector<Value>& inputs, const std::map<std::string, Shape>& shapes,
                      std::int64_t otherwise) {
  for (const Value& input : inputs) {
    const Shape& shape = shapes.at(input.name);
    if (!shape.empty()) return shape.front();
  }
  return otherwise;
}

}  // namespace

BenchResult bench(const std::string& model_path, const BenchOptions& options,
                  const Context& context) {
  check(options);
  load_engine(context);
  const PeakMemory memory;
  const Clock::time_point start = Clock::now();
  Profile profile;
  SessionOptions how;
  how.dequantize = options.dequantize;
  if (options.profile) how.on_step = [&](const StepTime& time) { profile.add(time); };
  Session session(load(model_path), how, context);
  BenchResult result{.model = model_path, .threads = context.num_threads()};
  result.load_ms = milliseconds_since(start);

  result.batch = effective_batch(session.inputs(), options.batch);
  if (result.batch != options.batch && options.batch != 1) {
    context.warn(format("bench: {}: its batch is fixed at {}, so that is what was timed",
                        model_path, result.batch));
  }
  std::mt19937_64 generator(context.seed);
  const auto shapes = resolve_shapes(session.inputs(), options.shapes, result.batch);
  const TensorMap feeds = random_feeds(session.inputs(), shapes, generator);
  result.batch = batch_of(session.inputs(), shapes, result.batch);
  const std::vector<double> times = time_runs(session, feeds, options, profile, context);
  result.runs = static_cast<int>(times.size());
  result.median_ms = median(times);
  result.p95_ms = percentile(times, 95);
  result.min_ms = times.front();
  result.samples_per_second = 1000.0 * static_cast<double>(result.batch) / result.median_ms;
  result.peak_rss_mb = memory.peak_mb();
  if (options.profile) result.steps = profile.steps(result.runs);
  return result;
}

}  // namespace quench
