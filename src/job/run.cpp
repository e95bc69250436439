// SPDX-License-Identifier: Apache-2.0
// The order of the steps.
#include <chrono>
#include <filesystem>
#include <limits>

#include "base/made_folder.h"
#include "base/memory.h"
#include "base/share.h"
#include "calibrate/collect.h"
#include "calibrate/shards.h"
#include "formats/fingerprint.h"
#include "formats/registry.h"
#include "job/job.h"
#include "job/job_files.h"
#include "job/shards.h"
#include "job/stored_weights.h"
#include "options/settings.h"
#include "quench/ranks.h"
#include "report/advice.h"
#include "report/batchnorm_check.h"
#include "tune/technique.h"

namespace quench {
namespace job {
namespace {

/// The part of memory that weights which were made may take before they wait on disk.
constexpr std::uint64_t kShareOfResults = 16;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// What can be said of the data and the model before anything is chosen.
void advise_on_data(Job& job) {
  QuantizeReport& report = job.report;
  warn_of_values(job.statistics, report);
  warn_of_dead_channels(job.model, job.plan, report);
  warn_of_shared_scales(job.model, job.plan, report);
  // Processes that hold parts of a model must run alike: what one doubts the others may not.
  if (!job.samples.any() || shards(job.context) != nullptr) return;
  warn_of_few_samples(job.samples.calibration().count, report);
  // Raw pixels explain unlike data: one of the two sentences is enough.
  if (!job.doubted) warn_of_unlike_data(job.original, job.samples, job.context, report);
  for (const TensorMap& inputs : job.validation.inputs(kAll)) {
    const std::size_t before = report.warnings.size();
    warn_of_unseen_inputs(inputs, job.statistics, report);
    if (report.warnings.size() > before) break;  // one run tells as much as all
  }
}

}  // namespace

void solve(Job& job) {
  if (!job.is_full()) return;
  job.solution = calibrate::solve(job.model, job.plan, job.statistics, job.config.custom_observers,
                                  job.context.num_threads(), shards(job.context));
}

void calibrate_and_tune(Job& job) {
  start_validation(job);
  if (shards(job.context) == nullptr) {
    if (const auto doubt = doubt_samples(job)) job.report.warnings.push_back(*doubt);
  }
  tune::apply(tune::Stage::Model, job);
  collect(job);
  if (job.is_full()) advise_on_data(job);
  solve(job);
  tune::apply(tune::Stage::Parameters, job);
  // From here on scales and zero points are those that are written.
  job.report.coarser_layers = legalize(job.model, job.plan, job.solution);
  if (Ranks* ranks = shards(job.context)) {
    calibrate::share_scales(job.model, job.plan, *ranks, job.solution);
  }
  for (const auto& [name, value] : job.plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) {
      job.report.value_observers[name] = value.spec.observer;
    }
  }
  tune::apply(tune::Stage::Weights, job);
}

void run(Job& job) {
  prepare(job);
  check_shards(job);
  plan(job);
  calibrate_and_tune(job);
  lower(job);
  evaluate(job);
}

}  // namespace job

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& given, const Context& context, Outputs& outputs) {
  const auto began = std::chrono::steady_clock::now();
  const PeakMemory memory;
  if (!context.writes()) outputs.keep_nothing();
  reads_job(outputs, model_path, given);
  writes_model(outputs, out_path, "the quantised model");
  const MadeFolder tables(given.debug_info_save_path, !context.writes());
  if (!given.report_save_path.empty()) writes_report(outputs, given.report_save_path);
  job::Job job(model_path, given, context);
  if (!out_path.ends_with(packed_format().extension)) {
    job.options.notes.insert(job.options.notes.end(), given.notes_unless_packed.begin(),
                             given.notes_unless_packed.end());
  }
  job.out_path = out_path;
  job::start_shards(job, out_path);
  const auto folder = std::filesystem::path(written_model(out_path).files.model).parent_path();
  job.overflow = std::make_shared<Overflow>(folder.empty() ? "." : folder.string(),
                                            memory_limit(context) / job::kShareOfResults);
  job::run(job);
  job::meet_shards(job);
  if (Ranks* ranks = sharers(context)) {
    ranks->agree("the quantised model", fingerprint(job.written));
  }
  if (context.writes()) job::write(job, out_path, outputs);
  job.report.settings = settings_json(shards(context) != nullptr ? job.options : given);
  job.report.peak_memory_mb = memory.peak_mb();
  job.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return std::move(job.report);
}

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return quantize(model_path, out_path, options, context, outputs); });
}

}  // namespace quench
