// SPDX-License-Identifier: Apache-2.0
// Tunes a job once, and opens what its models are evaluated with.
#include "job/analysis.h"

#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "evaluate/metric_command.h"
#include "evaluate/random_inputs.h"
#include "quench/ranks.h"
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

void open_evaluation(Evaluation& evaluation, const Model& model, const AnalyzeOptions& options,
                     const Context& context) {
  if (options.eval_function) {
    evaluation.eval = options.eval_function;
    return;
  }
  if (!options.metric_command.empty()) {
    // Ranks may share the folder.
    const std::string name =
        context.ranks ? format("metric_model_rank{}", context.ranks->rank()) : "metric_model";
    evaluation.eval = [command = options.metric_command, folder = options.save_dir,
                       name](const Model& m) {
      return quench::evaluation::run_metric_command(command, m, folder, name);
    };
    return;
  }
  const DataOptions& eval = options.eval.path.empty() ? options.quantize.data : options.eval;
  if (eval.path.empty()) {
    fail(ErrorKind::Usage, "the metric '{}' needs evaluation data: give --eval-data or --data",
         options.metric.empty() ? "sqnr" : options.metric);
  }
  const std::vector<Value> inputs = required_inputs(model.graph);
  auto source = open_data(eval, inputs, context);
  std::string metric = options.metric;
  if (metric.empty()) metric = source->has_labels() ? "top1" : "sqnr";
  evaluation.metric.emplace(metric, float_output_names(model.graph), source->truths());
  if (evaluation.metric->info().needs_labels && !source->has_labels()) {
    fail(ErrorKind::BadData, "the metric '{}' needs labels, and {} has none: give --eval-labels",
         metric, eval.path);
  }
  quench::evaluation::EvalData data(std::move(source), inputs, options.quantize.batch, context);
  evaluation.evaluator.emplace(model, std::move(data), context);
}

std::unique_ptr<Analysis> start_analysis(const std::string& model_path,
                                         const AnalyzeOptions& options, AnalysisNeeds needs,
                                         const Context& context, const std::string& out_path) {
  check(options, needs);
  if (!options.save_dir.empty()) make_folder(options.save_dir);
  auto analysis = std::make_unique<Analysis>(model_path, options.quantize, context);
  Job& job = analysis->job;
  job.observes_any_choice = true;
  job.out_path = out_path;
  prepare(job);
  plan(job);
  // A wrong metric or missing data is reported before the long pass.
  if (needs == AnalysisNeeds::Evaluation)
    open_evaluation(*analysis, job.model, options, job.context);
  const auto began = Clock::now();
  calibrate_and_tune(job);
  analysis->calibration_seconds = std::chrono::duration<double>(Clock::now() - began).count();
  analysis->simulator = std::make_unique<analyze::Simulator>(job);
  return analysis;
}

}  // namespace quench::job
