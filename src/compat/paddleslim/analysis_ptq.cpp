// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ.
#include "base/format.h"
#include "compat/paddleslim/names.h"
#include "quench/paddleslim.h"

namespace quench {
namespace {

std::string find_model(const AnalysisPtqOptions& options) {
  if (!options.params_filename.empty()) {
    fail(ErrorKind::Usage, "params_filename '{}': an ONNX file names its own external data",
         options.params_filename);
  }
  return compat::paddle_model_path(options.model_dir, options.model_filename);
}

AnalyzeOptions job_of(const AnalysisPtqOptions& options) {
  AnalyzeOptions job;
  job.quantize.config = options.ptq_config;
  job.quantize.data = options.data_loader;
  job.eval_function = options.eval_function;
  job.save_dir = options.save_dir;
  job.resume = options.resume;
  return job;
}

}  // namespace

AnalysisPTQ::AnalysisPTQ(AnalysisPtqOptions options, Context context)
    : options_(std::move(options)), context_(std::move(context)), path_(find_model(options_)) {}

StatisticsResult AnalysisPTQ::statistical_analyse() const {
  return analyze_statistics(path_, job_of(options_), context_);
}

SensitivityResult AnalysisPTQ::metric_error_analyse() const {
  return analyze_sensitivity(path_, job_of(options_), {}, context_);
}

TargetResult AnalysisPTQ::get_target_quant_model(double target_metric) const {
  return analyze_target(path_, job_of(options_), {.at_least = target_metric}, context_);
}

}  // namespace quench
