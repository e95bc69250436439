// SPDX-License-Identifier: Apache-2.0
// The steps that look at data: validation outputs, and the statistics of activations.
#include "calibrate/collect.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "analyze/simulator.h"
#include "base/format.h"
#include "calibrate/tally.h"
#include "evaluate/random_inputs.h"
#include "evaluate/raw_pixels.h"
#include "job/job.h"

namespace quench::job {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kValidationRun = 4;  ///< samples

/// A file of statistics remembers which model it is of.
void check_note(const std::string& note, const std::string& origin, const std::string& path) {
  const Json json = Json::parse(note, nullptr, false);
  if (!json.is_object() || !json.contains("model")) return;  // written by the caller's own code
  if (json["model"] == origin) return;
  fail(ErrorKind::BadData, "{} holds the statistics of another model; calibrate this model again",
       path);
}

/// Loads the engine and meanwhile reads samples that several steps will ask for.
void load_engine_and_samples(const Job& job) {
  const std::future<void> engine =
      std::async(std::launch::async, [&job] { load_engine(job.context); });
  const auto loading = [&] {
    return engine.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  for (const evaluation::SampleRange& range :
       {job.samples.validation(), job.samples.first(job.options.correction_samples)}) {
    for (std::int64_t i = 0; i < range.count && loading(); ++i) {
      (void)job.samples.source().read(range.first + i);
    }
  }
  engine.wait();  // what went wrong is told by the first session
}

/// The first samples, with the means that bias correction wants, unless a technique has run them.
void collect_with_means(Job& job, std::int64_t count) {
  std::vector<std::string> values = values_to_observe(job);
  std::optional<tune::FirstPass> made = std::exchange(job.first, std::nullopt);
  if (!made || made->samples != count || made->values != values) {
    made = tune::pass_first(
        job.model, job.plan, std::move(values),
        {.source = job.samples.source(), .count = count, .batch = job.options.batch}, job.context);
  }
  job.statistics = std::move(made->statistics);
  job.means = std::move(made->means);
}

/// A pass over the calibration set. Where an observer wants to choose by samples that it has not
/// seen, a fifth is collected apart.
void collect_from_samples(Job& job) {
  const std::int64_t all = job.samples.calibration().count;
  const std::int64_t size = job.samples.run_size();
  const std::int64_t unseen = calibrate::wants_held_out(job.plan) ? all / 5 / size * size : 0;
  const std::int64_t seen = all - unseen;
  const QuantizeOptions& options = job.options;
  const std::int64_t measured =
      options.bias_correction ? std::min(job.samples.first(options.correction_samples).count, seen)
                              : 0;
  if (measured > 0) collect_with_means(job, measured);
  const auto collect = [&](std::int64_t first, std::int64_t count, StatisticMap before) {
    return calibrate::collect(
        job.model, values_to_observe(job), job.samples.source(),
        {.batch = options.batch, .first = first, .count = count, .seen = std::move(before)},
        job.context);
  };
  if (measured < seen) {
    job.statistics = collect(measured, seen - measured, std::move(job.statistics));
  }
  if (unseen == 0) return;
  const StatisticMap others = collect(seen, unseen, {});
  job.plan = calibrate::choose_observers(std::move(job.plan), job.statistics, others);
  calibrate::append(job.statistics, others);
}

/// Inputs without a single number have no range; nor has anything behind them.
void expect_numbers(const Job& job) {
  for (const Value& input : required_inputs(job.model.graph)) {
    const auto seen = job.statistics.find(input.name);
    if (seen == job.statistics.end() || seen->second.count > 0) continue;
    if (seen->second.nans + seen->second.infinities == 0) continue;
    fail(ErrorKind::BadData,
         "every value that '{}' was fed is NaN or infinite; check how the samples are made",
         input.name);
  }
}

}  // namespace

std::vector<std::string> values_to_observe(const Job& job) {
  return job.observes_any_choice ? analyze::values_of_any_choice(job.model, job.config)
                                 : calibrate::observed_values(job.plan);
}

std::string statistics_note(const Job& job, std::int64_t samples) {
  const Json note = {{"model", job.origin},
                     {"data", job.options.data.path},
                     {"samples", samples},
                     {"batch", job.options.batch}};
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatisticMap read_statistics(const std::vector<std::string>& paths, const std::string& origin) {
  StatisticMap statistics;
  for (const std::string& path : paths) {
    std::string note;
    const StatisticMap read = load_statistics(path, &note);
    check_note(note, origin, path);
    calibrate::append(statistics, read);
  }
  return statistics;
}

void start_validation(Job& job) {
  if (!job.samples.any()) return;
  load_engine_and_samples(job);
  job.validation = evaluation::Evaluator(
      job.model, {job.samples.read(job.samples.validation(), kValidationRun), job.context},
      job.context);
}

std::optional<std::string> doubt_samples(Job& job) {
  if (!job.samples.any()) return std::nullopt;
  auto doubt = evaluation::doubt_raw_pixels(job.model, job.model_path, job.options.data.path,
                                            job.samples.source(), job.context);
  job.doubted = doubt.has_value();
  return doubt;
}

void collect(Job& job) {
  if (!job.is_full()) return;
  if (!job.options.statistics.empty()) {
    job.statistics = read_statistics(job.options.statistics, job.origin);
  } else if (job.samples.any()) {
    collect_from_samples(job);
  } else {
    fail(ErrorKind::Usage,
         "full quantisation needs samples to calibrate with: give --data, or "
         "--stats with a file of `quench calibrate`");
  }
  for (const auto& [name, statistic] : job.statistics) {
    job.report.calibration_samples = std::max(job.report.calibration_samples, statistic.samples);
  }
  expect_numbers(job);
}

}  // namespace quench::job
