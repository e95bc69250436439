// SPDX-License-Identifier: Apache-2.0
// Full quantisation, step by step.
#include "quench/quantize.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "calibrate/collect.h"
#include "calibrate/tally.h"
#include "passes/run.h"
#include "pipeline/quantize_job.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/small_layers.h"
#include "pipeline/tuning.h"
#include "pipeline/weight.h"
#include "tune/gates.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// Fewer calibration samples than this are worth a warning.
constexpr std::int64_t kFewSamples = 10;

/// Both parts are whole batches of a model whose batch is fixed.
Split split(std::int64_t samples, std::int64_t held_out, std::int64_t batch) {
  const std::int64_t judge = std::min(held_out, samples / 5) / batch * batch;
  return {.calibrate = (samples - judge) / batch * batch, .judge = judge};
}

bool has_integer_nodes(const QuantPlan& plan) {
  return std::ranges::any_of(
      plan.nodes, [](const NodePlan& node) { return node.kind == NodePlan::Kind::Integer; });
}

Job start(const std::string& model_path, const QuantizeOptions& options, const Context& context) {
  Job job;
  Model model = load(model_path);
  set_input_shapes(model, options.input_shapes);
  job.model = prepare_for_quantization(std::move(model));
  job.plan = make_plan(job.model, without_small_layers(job.model.graph, options));
  // A wrong name is reported before the data are read.
  calibrate::check_observers(job.plan, options.config.custom_observers);
  if (!options.data.path.empty()) {
    job.source = open_data(options.data, model_inputs(job.model.graph), context);
    const std::int64_t batch = run_size(*job.source, model_inputs(job.model.graph));
    job.parts = split(job.source->size(), options.held_out, batch);
    if (job.parts.calibrate == 0) {
      fail(ErrorKind::BadData, "{} holds {} samples, but '{}' takes {} a run", options.data.path,
           job.source->size(), model_path, batch);
    }
  }
  return job;
}

void gather(Job& job, const QuantizeOptions& options, const Context& context) {
  if (!options.statistics.empty()) {
    for (const std::string& path : options.statistics) {
      calibrate::append(job.statistics, load_statistics(path));
    }
    return;
  }
  if (!job.source) {
    fail(ErrorKind::Usage,
         "full quantisation needs samples to calibrate with: give --data, or "
         "--stats with a file of `quench calibrate`");
  }
  const auto collect = [&](std::int64_t first, std::int64_t count) {
    return calibrate::collect(job.model, observed_values(job.plan), *job.source,
                              {.batch = options.batch, .first = first, .count = count}, context);
  };
  const std::int64_t batch = run_size(*job.source, model_inputs(job.model.graph));
  const std::int64_t held_out =
      calibrate::wants_held_out(job.plan) ? job.parts.calibrate / 5 / batch * batch : 0;
  job.statistics = collect(0, job.parts.calibrate - held_out);
  if (held_out == 0) return;
  const StatisticMap judging = collect(job.parts.calibrate - held_out, held_out);
  job.plan = calibrate::settle_observers(std::move(job.plan), job.statistics, judging);
  calibrate::append(job.statistics, judging);
}

}  // namespace

Model prepare_for_quantization(Model model) {
  constexpr std::array<std::string_view, 4> kPasses = {"inline_functions", "lift_constants",
                                                       "remove_identity", "fold_batchnorm"};
  infer_types(model);
  passes::run(model, kPasses, {});
  tune::join_gates(model);
  infer_types(model);
  return model;
}

void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context) {
  Job job = start(model_path, options, context);
  gather(job, options, context);
  save_statistics(job.statistics, statistics_path);
}

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context) {
  if (options.type == QuantType::Weight) {
    return quantize_weights(model_path, out_path, options, context);
  }
  if (options.type == QuantType::Dynamic) {
    return quantize_dynamic(model_path, out_path, options, context);
  }
  const auto began = Clock::now();
  QuantizeReport report;
  Job job = start(model_path, options, context);
  report.warnings = options.notes;
  if (!has_integer_nodes(job.plan)) {
    fail(ErrorKind::Unsupported, "no layer of '{}' can be quantised for target '{}'", model_path,
         options.config.target);
  }
  { const AtomicFile probe(out_path); }  // a path that cannot be written: say so before the work
  const Judge judge(job, context);
  equalize_channels(job, judge, options, context, report);
  note_decisions(job.model, job.plan, report);
  gather(job, options, context);
  warn_of_values(job.statistics, report);
  if (job.source && job.parts.calibrate < kFewSamples) {
    report.warnings.push_back(
        format("only {} samples to calibrate with; 100 or more that look like the real ones give "
               "better ranges",
               job.parts.calibrate));
  }
  job.solution =
      calibrate::solve(job.model, job.plan, job.statistics, options.config.custom_observers);
  Model quantised = with_biases(job, judge, options, context, report);
  report.outputs = judge.scores(quantised);
  if (options.qoperator) quantised = to_qoperator(quantised);
  save(quantised, out_path);
  report.calibration_samples = job.source ? job.parts.calibrate : 0;
  report.judged_samples = job.parts.judge;
  report.bytes_before = static_cast<std::int64_t>(file_size(model_path));
  report.bytes_after = static_cast<std::int64_t>(file_size(out_path));
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return report;
}

}  // namespace quench
