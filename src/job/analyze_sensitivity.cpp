// SPDX-License-Identifier: Apache-2.0
// quench analyze sensitivity: which layer is it?
#include <array>
#include <chrono>
#include <limits>

#include "analyze/checkpoint.h"
#include "analyze/sensitivity.h"
#include "base/file.h"
#include "base/format.h"
#include "base/share.h"
#include "formats/locate.h"
#include "job/analysis.h"
#include "job/job_files.h"
#include "report/job_page.h"

namespace quench {
namespace {

using analyze::Checkpoint;
using analyze::ScoreOrigin;
using evaluation::hash_bytes;
using evaluation::hash_text;
using job::Analysis;

using Clock = std::chrono::steady_clock;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::string hex(std::uint64_t hash) { return format("{:016x}", hash); }

ScoreOrigin origin_of(Analysis& analysis, const AnalyzeOptions& options,
                      const SensitivityOptions& how) {
  ScoreOrigin result;
  const auto file = MappedFile::open(locate_model(analysis.job.model_path).model);
  result.model = hex(hash_bytes(file->bytes()));
  // Every calibration sample has its part in the statistics, whatever the settings make of them.
  std::uint64_t data = analysis.evaluator ? analysis.evaluator->data().fingerprint() : 0;
  for (const auto& [name, seen] : analysis.job.statistics) {
    const std::array told = {seen.min, seen.max, seen.mean()};
    data = hash_bytes(std::as_bytes(std::span(told)), data);
  }
  const QuantSolution& solution = analysis.job.solution;
  std::uint64_t specs = 0;
  for (const auto& [name, params] : solution.values) {
    specs = hash_text(
        format("{} {} {} {}", name, params.spec.bits, params.spec.symmetric, params.spec.observer),
        specs);
  }
  for (const auto& [place, params] : solution.weights) {
    specs = hash_text(format("{} {} {} {}", place.first, params.spec.bits, params.spec.axis,
                             params.spec.observer),
                      specs);
  }
  for (const WeightItem& item : analysis.job.stored) {
    specs = hash_text(format("{} {} {} {} {} {}", item.name, item.spec.bits, item.spec.symmetric,
                             item.spec.axis, item.spec.block, item.dynamic),
                      specs);
  }
  result.data = hex(data);
  result.settings =
      format("{} {} {} batch {} {}", analysis.metric ? analysis.metric->name() : "function",
             options.metric_command, how.reverse ? "all but one" : "one", options.quantize.batch,
             hex(specs));
  return result;
}

/// Scores that a function gives: one number a layer.
void score_by_function(Analysis& analysis, const SensitivityOptions& how, analyze::Scores& scores,
                       const Context& context, const std::function<void()>& checkpoint) {
  analyze::Simulator& simulator = *analysis.simulator;
  const auto& layers = simulator.layers();
  analyze::score_layers(
      {layers, scores, context, checkpoint},
      [&](std::size_t i) { return scores.contains(layers[i].name); },
      [&](std::size_t i) -> std::vector<evaluation::SampleScore> {
        const std::string& name = layers[i].name;
        const analyze::Choice choice =
            how.reverse ? analyze::Choice{.in_float = {name}} : simulator.only(name);
        return {{.metric = analysis.eval(simulator.quantized(choice))}};
      });
}

void rank_by_function(Analysis& analysis, const SensitivityOptions& how, Checkpoint& checkpoint,
                      const Context& context, SensitivityResult& result) {
  // The metric only orders here: "cosine" is a mean of which more is better.
  const evaluation::SampleMetric metric("cosine", {"function"});
  analyze::Scores scores;
  if (result.resumed != 0) scores = checkpoint.load();
  result.resumed = static_cast<std::int64_t>(scores.size());
  score_by_function(analysis, how, scores, context, [&] { checkpoint.save(scores, true); });
  result.metric = "function";
  result.layers = analyze::rank(analysis.simulator->layers(), metric, scores, how.reverse);
  for (LayerSensitivity& layer : result.layers) layer.sqnr = kNaN;
  result.float_metric = analysis.eval(analysis.simulator->model());
  result.quantized_metric = analysis.eval(analysis.simulator->quantized({}));
}

void rank_by_data(Analysis& analysis, const SensitivityOptions& how, Checkpoint& checkpoint,
                  const Context& context, SensitivityResult& result) {
  const evaluation::SampleMetric& metric = *analysis.metric;
  const evaluation::Evaluator& evaluator = *analysis.evaluator;
  analyze::SensitivityJob job{.simulator = *analysis.simulator,
                              .evaluator = *analysis.evaluator,
                              .metric = metric,
                              .context = context,
                              .scores = {},
                              .checkpoint = {}};
  if (result.resumed != 0) job.scores = checkpoint.load();
  result.resumed = static_cast<std::int64_t>(job.scores.size());
  job.checkpoint = [&] { checkpoint.save(job.scores); };
  const auto began = Clock::now();
  // Parts of a model run whole: every collective of a run has its counterparts on the other ranks.
  if (how.reverse || !how.partial_runs || shards(context) != nullptr) {
    analyze::score_plainly(job, how.reverse);
  } else if (how.quick) {
    analyze::score_quickly(job, static_cast<std::size_t>(how.worst));
  } else {
    analyze::score_exactly(job);
  }
  result.seconds = since(began);
  checkpoint.save(job.scores, true);
  result.metric = metric.name();
  result.higher_is_better = metric.info().higher_is_better;
  result.samples = analysis.evaluator->data().size();
  result.layers = analyze::rank(analysis.simulator->layers(), metric, job.scores, how.reverse);
  result.float_metric = metric.value(evaluator.own_samples(metric));
  result.quantized_metric =
      metric.value(evaluator.samples(analysis.simulator->quantized({}), metric));
}

/// What no process that has one part of a model can do.
void check_for_shards(const AnalyzeOptions& options, const SensitivityOptions& how) {
  const auto no = [](std::string_view what, std::string_view why) {
    fail(ErrorKind::Usage, "{} {}; leave it out with --tensor-parallel", what, why);
  };
  if (how.quick)
    no("--quick", "stops for a layer when it has seen enough, and ranks must stop alike");
  if (options.eval_function)
    no("eval_function", "would get one part of a model, which runs nowhere alone");
  if (!options.metric_command.empty()) {
    no("--metric-command", "would get one part of a model, which runs nowhere alone");
  }
  if (!how.float_model.empty()) no("--float", "is about whole models");
  if (!options.quantize.report_save_path.empty()) no("--report", "draws what one process has");
}

}  // namespace

void job::write_analysis(const SensitivityResult& result, const std::string& path,
                         Outputs& outputs) {
  std::string text;
  for (const LayerSensitivity& layer : result.layers) {
    text += format("{} layer name: {}, eval metric: {}\n", result.reverse ? "without" : "quant",
                   on_one_line(layer.layer), layer.metric);
  }
  write_text(path, text, outputs);
}

SensitivityResult analyze_sensitivity(const std::string& model_path, const AnalyzeOptions& options,
                                      const SensitivityOptions& how, const Context& context) {
  return with_outputs([&](Outputs& outputs) {
    return analyze_sensitivity(model_path, options, how, context, outputs);
  });
}

SensitivityResult analyze_sensitivity(const std::string& model_path, const AnalyzeOptions& options,
                                      const SensitivityOptions& how, const Context& context,
                                      Outputs& outputs) {
  if (shards(context) != nullptr) check_for_shards(options, how);
  if (how.worst < 1) fail(ErrorKind::Usage, "the worst layers must be at least 1");
  if (!how.float_model.empty()) {
    return job::analyze_quantized(model_path, options, how, context, outputs);
  }
  const job::RankingFiles files(model_path, options, context, outputs);
  const auto started =
      job::start_analysis(model_path, options, job::AnalysisNeeds::Evaluation, context);
  Analysis& analysis = *started;
  Checkpoint checkpoint(files.checkpoint, origin_of(analysis, options, how), context);
  SensitivityResult result{.reverse = how.reverse};
  result.resumed = options.resume ? 1 : 0;
  const auto began = Clock::now();
  if (analysis.eval) {
    rank_by_function(analysis, how, checkpoint, context, result);
    result.seconds = since(began);
  } else {
    rank_by_data(analysis, how, checkpoint, context, result);
  }
  result.calibration_seconds = analysis.calibration_seconds;
  if (!leads(context)) return result;
  job::write_analysis(result, files.table, outputs);
  if (const std::string& page = options.quantize.report_save_path; !page.empty()) {
    job::lower(analysis.job);
    report::ReportData data = report::page_of(analysis.job, analysis.job.quantized, model_path);
    report::add_sensitivity(result, data);
    report::write_page(data, page, outputs);
  }
  return result;
}

}  // namespace quench
