// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ, AnalysisQAT, and the Analysis of its version 2.5.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "compat/paddleslim/names.h"
#include "quench/formats.h"
#include "quench/paddleslim_analysis.h"

namespace quench {
namespace {

std::string path_of(const AnalysisPtqOptions& options) {
  return model_path(options.model_dir, options.model_filename, options.params_filename);
}

AnalyzeOptions analysis_of(const AnalysisPtqOptions& options) {
  AnalyzeOptions job;
  job.quantize = compat::job_of(options.ptq_config, compat::is_paddle(path_of(options)));
  job.quantize.data = options.data_loader;
  job.quantize.data.limit = compat::sample_limit(options.ptq_config, options.data_loader.limit);
  job.eval = options.data_loader;
  job.eval_function = options.eval_function;
  job.save_dir = options.save_dir;
  job.resume = options.resume;
  return job;
}

TargetResult target_model(const AnalysisPtqOptions& options, const AnalyzeOptions& job,
                          double target_metric, const Context& context) {
  const std::string path = path_of(options);
  const auto folder = std::filesystem::path(options.save_dir) / "target_quant_model";
  const std::string out = compat::save_path(folder.string(), {}, compat::is_paddle(path));
  return analyze_target(path, job, {.at_least = target_metric, .out_path = out}, context);
}

AnalysisPtqOptions as_ptq(AnalysisOptions options) {
  if (!options.quant_model_dir.empty()) {
    fail(ErrorKind::Unsupported,
         "quant_model_dir is '{}': layers of a model that was trained quantised are not ranked; "
         "leave it empty",
         options.quant_model_dir);
  }
  return {.model_dir = std::move(options.float_model_dir),
          .model_filename = std::move(options.model_filename),
          .params_filename = std::move(options.params_filename),
          .eval_function = std::move(options.eval_function),
          .data_loader = std::move(options.data_loader),
          .save_dir = std::move(options.save_dir),
          .resume = options.resume,
          .ptq_config = std::move(options.quant_config)};
}

/// Without a function the outputs' cosine ranks the layers.
AnalyzeOptions by_cosine(const AnalysisPtqOptions& options) {
  AnalyzeOptions job = analysis_of(options);
  if (!job.eval_function) job.metric = "cosine";
  return job;
}

}  // namespace

AnalysisPTQ::AnalysisPTQ(AnalysisPtqOptions options, Context context)
    : options_(std::move(options)), context_(std::move(context)) {
  (void)analysis_of(options_);  // a wrong parameter is refused before any work
}

StatisticsResult AnalysisPTQ::statistical_analyse() const {
  return analyze_statistics(path_of(options_), analysis_of(options_), context_);
}

SensitivityResult AnalysisPTQ::metric_error_analyse() const {
  return analyze_sensitivity(path_of(options_), analysis_of(options_), {}, context_);
}

TargetResult AnalysisPTQ::get_target_quant_model(double target_metric) const {
  return target_model(options_, analysis_of(options_), target_metric, context_);
}

Analysis::Analysis(AnalysisOptions options, Context context)
    : options_(as_ptq(std::move(options))), context_(std::move(context)) {
  (void)by_cosine(options_);
}

StatisticsResult Analysis::statistical_analyse() const {
  return analyze_statistics(path_of(options_), by_cosine(options_), context_);
}

SensitivityResult Analysis::metric_error_analyse() const {
  SensitivityResult result =
      analyze_sensitivity(path_of(options_), by_cosine(options_), {}, context_);
  std::ranges::stable_sort(result.layers, {}, &LayerSensitivity::metric);
  std::string text;
  for (const LayerSensitivity& layer : result.layers) {
    text += format("layer name: {}, sensitivity metric: {}\n", on_one_line(layer.layer),
                   result.float_metric - layer.metric);
  }
  write_text((std::filesystem::path(options_.save_dir) / "analysis.txt").string(), text);
  return result;
}

TargetResult Analysis::get_target_quant_model(double target_metric) const {
  return target_model(options_, by_cosine(options_), target_metric, context_);
}

SensitivityResult AnalysisQAT::metric_error_analyse() const {
  const auto in = [&](const std::string& folder) {
    return model_path(folder, options_.model_filename, options_.params_filename);
  };
  AnalyzeOptions job;
  job.quantize.data = options_.data_loader;
  job.eval_function = options_.eval_function;
  job.save_dir = options_.save_dir;
  job.resume = options_.resume;
  return analyze_sensitivity(in(options_.quant_model_dir), job,
                             {.float_model = in(options_.float_model_dir)}, context_);
}

}  // namespace quench
