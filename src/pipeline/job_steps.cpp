// SPDX-License-Identifier: Apache-2.0
// The steps of a quantisation that end with statistics.
#include "pipeline/job_steps.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "calibrate/collect.h"
#include "calibrate/tally.h"
#include "pipeline/cached_source.h"
#include "pipeline/fingerprint.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/small_layers.h"
#include "quench/session.h"

namespace quench {
namespace {

using Json = nlohmann::ordered_json;

/// A file of statistics remembers which model it is of.
void check_note(const std::string& note, const std::string& origin, const std::string& path) {
  const Json json = Json::parse(note, nullptr, false);
  if (!json.is_object() || !json.contains("model")) return;  // written by the caller's own code
  if (json["model"] == origin) return;
  fail(ErrorKind::BadData, "{} holds the statistics of another model; calibrate this model again",
       path);
}

void open_samples(Job& job, const std::string& model_path, const QuantizeOptions& options,
                  const Context& context) {
  const std::vector<Value> inputs = model_inputs(job.model.graph);
  job.source = std::make_unique<CachedSource>(open_data(options.data, inputs, context));
  const std::int64_t batch = run_size(*job.source, inputs);
  job.parts = split(job.source->size(), options.held_out, batch);
  if (job.parts.calibrate == 0) {
    fail(ErrorKind::BadData, "{} holds {} samples, but '{}' takes {} a run", options.data.path,
         job.source->size(), model_path, batch);
  }
}

/// The first samples, with the means that bias correction wants: one pass for both.
void collect_with_means(Job& job, std::int64_t count, const QuantizeOptions& options,
                        const Context& context) {
  tune::MeanRecorder recorder(job.model, job.plan);
  calibrate::CollectOptions collect{.batch = options.batch, .count = count};
  collect.on_outputs = [&](const TensorMap& outputs, std::int64_t samples) {
    recorder.add(outputs, samples);
  };
  job.statistics = calibrate::collect(recorder.model(), observed_values(job.plan), *job.source,
                                      collect, context);
  job.means = recorder.means();
}

}  // namespace

std::int64_t correction_samples(const Job& job, const QuantizeOptions& options) {
  const std::int64_t batch = run_size(*job.source, model_inputs(job.model.graph));
  return std::min(job.parts.calibrate, options.correction_samples) / batch * batch;
}

Split split(std::int64_t samples, std::int64_t held_out, std::int64_t batch) {
  const std::int64_t judge = std::min(held_out, samples / 5) / batch * batch;
  return {.calibrate = (samples - judge) / batch * batch, .judge = judge};
}

Job start_job(const std::string& model_path, const QuantizeOptions& options,
              const Context& context) {
  Job job;
  job.unfolded = load(model_path);
  job.origin = fingerprint(job.unfolded);
  set_input_shapes(job.unfolded, options.input_shapes);
  infer_and_warn(job.unfolded, context);
  job.model = prepare_for_quantization(job.unfolded);
  job.plan = make_final_plan(job.model, without_small_layers(job.model.graph, options));
  // A wrong name is reported before the data are read.
  calibrate::check_observers(job.plan, options.config.custom_observers);
  if (!options.data.path.empty()) open_samples(job, model_path, options, context);
  return job;
}

void warm_up(const Job& job, const QuantizeOptions& options, const Context& context) {
  if (!job.source) return;
  const std::future<void> engine =
      std::async(std::launch::async, [&context] { load_engine(context); });
  const auto loading = [&] {
    return engine.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  };
  const std::int64_t end = job.parts.calibrate + job.parts.judge;
  for (std::int64_t i = job.parts.calibrate; i < end && loading(); ++i) (void)job.source->read(i);
  const std::int64_t first = correction_samples(job, options);
  for (std::int64_t i = 0; i < first && loading(); ++i) (void)job.source->read(i);
  engine.wait();  // what went wrong is told by the first session
}

std::string statistics_note(const Job& job, const QuantizeOptions& options) {
  const Json note = {{"model", job.origin},
                     {"data", options.data.path},
                     {"samples", job.parts.calibrate},
                     {"batch", options.batch}};
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

void gather(Job& job, const QuantizeOptions& options, const Context& context) {
  if (!options.statistics.empty()) {
    job.statistics = read_statistics(options.statistics, job.origin);
    return;
  }
  if (!job.source) {
    fail(ErrorKind::Usage,
         "full quantisation needs samples to calibrate with: give --data, or "
         "--stats with a file of `quench calibrate`");
  }
  const std::int64_t batch = run_size(*job.source, model_inputs(job.model.graph));
  const std::int64_t held_out =
      calibrate::wants_held_out(job.plan) ? job.parts.calibrate / 5 / batch * batch : 0;
  const std::int64_t seen = job.parts.calibrate - held_out;
  const std::int64_t measured =
      options.bias_correction ? std::min(correction_samples(job, options), seen) : 0;
  if (measured > 0) collect_with_means(job, measured, options, context);
  const auto collect = [&](std::int64_t first, std::int64_t count, StatisticMap before) {
    return calibrate::collect(
        job.model, observed_values(job.plan), *job.source,
        {.batch = options.batch, .first = first, .count = count, .seen = std::move(before)},
        context);
  };
  if (measured < seen) {
    job.statistics = collect(measured, seen - measured, std::move(job.statistics));
  }
  if (held_out == 0) return;
  const StatisticMap judging = collect(seen, held_out, {});
  job.plan = calibrate::settle_observers(std::move(job.plan), job.statistics, judging);
  calibrate::append(job.statistics, judging);
}

}  // namespace quench
