// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ and AnalysisQAT.
#include <filesystem>

#include "compat/paddleslim/names.h"
#include "quench/formats.h"

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
  const std::string path = path_of(options_);
  const auto folder = std::filesystem::path(options_.save_dir) / "target_quant_model";
  const std::string out = compat::save_path(folder.string(), {}, compat::is_paddle(path));
  return analyze_target(path, analysis_of(options_), {.at_least = target_metric, .out_path = out},
                        context_);
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
