// SPDX-License-Identifier: Apache-2.0
// Tunes a job once, and opens what its models are evaluated with.
#include "job/analysis.h"

#include <chrono>
#include <filesystem>

#include "base/format.h"
#include "base/share.h"
#include "job/job_files.h"
#include "job/shards.h"
#include "tune/technique.h"

namespace quench::job {
namespace {

using Clock = std::chrono::steady_clock;

void check(const AnalyzeOptions& options, AnalysisNeeds needs) {
  const QuantType type = options.quantize.type;
  const TrainingOptions& training = options.quantize.training;
  if (training.adaround || training.reconstruct || training.any()) {
    fail(
        ErrorKind::Usage,
        "analysis quantises layer by layer, and what is learned is learned of all layers together: "
        "analyse the model that was written, with --float");
  }
  const bool full = type == QuantType::Full || type == QuantType::None;
  if (full && options.quantize.data.path.empty() && options.quantize.statistics.empty()) {
    fail(ErrorKind::Usage, "analysis needs samples to calibrate with: give --data PATH");
  }
  if (needs == AnalysisNeeds::Evaluation && options.eval_function &&
      !options.metric_command.empty()) {
    fail(ErrorKind::Usage, "give an eval_function or a metric command, not both");
  }
}

}  // namespace

RankingFiles::RankingFiles(const std::string& model_path, const AnalyzeOptions& options,
                           const Context& context, Outputs& outputs)
    : folder(options.save_dir, !leads(context)),
      table((std::filesystem::path(options.save_dir) / "analysis.txt").string()),
      checkpoint((std::filesystem::path(options.save_dir) / "analysis_checkpoint.json").string()) {
  if (!leads(context)) outputs.keep_nothing();
  reads_analysis(outputs, model_path, options);
  outputs.writes(table, "the analysis");
  outputs.writes(checkpoint, "the checkpoint");
  const std::string& page = options.quantize.report_save_path;
  if (!page.empty()) writes_report(outputs, page);
}

std::unique_ptr<Analysis> start_analysis(const std::string& model_path,
                                         const AnalyzeOptions& options, AnalysisNeeds needs,
                                         const Context& context, const std::string& out_path) {
  check(options, needs);
  auto analysis = std::make_unique<Analysis>(model_path, options.quantize, context);
  Job& job = analysis->job;
  job.observes_any_choice = true;
  job.out_path = out_path;
  start_shards(job, "");
  prepare(job);
  check_shards(job);
  plan(job);
  // A wrong metric or missing data is reported before the long pass.
  if (needs == AnalysisNeeds::Evaluation)
    analyze::open_evaluation(*analysis, job.model, options, job.context);
  const auto began = Clock::now();
  calibrate_and_tune(job);
  analysis->calibration_seconds = std::chrono::duration<double>(Clock::now() - began).count();
  analysis->simulator = std::make_unique<analyze::Simulator>(job);
  return analysis;
}

}  // namespace quench::job
