// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ, AnalysisQAT, and the Analysis of its version 2.5.
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "compat/paddleslim/names.h"
#include "evaluate/random_inputs.h"
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

bool has_labels(const AnalysisPtqOptions& options, const Context& context) {
  const Model model = load(path_of(options));
  return open_data(options.data_loader, required_inputs(model.graph), context)->has_labels();
}

void expect_no_quantized(const std::string& folder, std::string_view method) {
  if (folder.empty()) return;
  fail(
      ErrorKind::Usage,
      "{} quantises float_model_dir itself, and quant_model_dir is '{}': leave that empty, or call "
      "metric_error_analyse, which ranks its layers",
      method, folder);
}

/// Layers of a quantised model, the most harmful first.
SensitivityResult rank_quantized(const AnalysisPtqOptions& options, const std::string& quantized,
                                 const AnalyzeOptions& job, const SensitivityOptions& given,
                                 const Context& context) {
  SensitivityOptions how = given;
  how.float_model = path_of(options);
  return analyze_sensitivity(model_path(quantized, options.model_filename, options.params_filename),
                             job, how, context);
}

/// PaddleSlim's lines: what each layer costs.
void write_costs(const std::string& folder, const SensitivityResult& result, double base) {
  std::string text;
  for (const LayerSensitivity& layer : result.layers) {
    text += format("layer name: {}, sensitivity metric: {}\n", on_one_line(layer.layer),
                   base - layer.metric);
  }
  write_text((std::filesystem::path(folder) / "analysis.txt").string(), text);
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
  if (!options_.eval_function && !has_labels(options_, context_)) {
    fail(ErrorKind::Usage,
         "get_target_quant_model({}) has nothing to reach it by: give eval_function, or samples "
         "with "
         "labels; without them only the SQNR in dB would be left",
         target_metric);
  }
  return target_model(options_, analysis_of(options_), target_metric, context_);
}

Analysis::Analysis(AnalysisOptions options, Context context)
    : options_(as_ptq(options)),
      quant_model_dir_(std::move(options.quant_model_dir)),
      context_(std::move(context)) {
  (void)by_cosine(options_);
}

StatisticsResult Analysis::statistical_analyse() const {
  expect_no_quantized(quant_model_dir_, "statistical_analyse");
  return analyze_statistics(path_of(options_), by_cosine(options_), context_);
}

SensitivityResult Analysis::metric_error_analyse() const {
  if (!quant_model_dir_.empty()) {
    SensitivityResult found =
        rank_quantized(options_, quant_model_dir_, by_cosine(options_), {}, context_);
    write_costs(options_.save_dir, found, found.quantized_metric);
    return found;
  }
  SensitivityResult result =
      analyze_sensitivity(path_of(options_), by_cosine(options_), {}, context_);
  std::ranges::stable_sort(result.layers, {}, &LayerSensitivity::metric);
  write_costs(options_.save_dir, result, result.float_metric);
  return result;
}

TargetResult Analysis::get_target_quant_model(double target_metric) const {
  expect_no_quantized(quant_model_dir_, "get_target_quant_model");
  return target_model(options_, by_cosine(options_), target_metric, context_);
}

SensitivityResult AnalysisQAT::metric_error_analyse() const {
  const AnalysisPtqOptions plain{.model_dir = options_.float_model_dir,
                                 .model_filename = options_.model_filename,
                                 .params_filename = options_.params_filename};
  SensitivityOptions how;
  how.op_types = compat::onnx_names(options_.quantizable_op_type);
  how.quantized_metric = options_.qat_metric;
  AnalyzeOptions job;
  job.quantize.data = options_.data_loader;
  job.eval_function = options_.eval_function;
  job.save_dir = options_.save_dir;
  job.resume = options_.resume;
  return rank_quantized(plain, options_.quant_model_dir, job, how, context_);
}

}  // namespace quench
