// SPDX-License-Identifier: Apache-2.0
// The Analysis of PaddleSlim 2.5, with its names and defaults.
#pragma once

#include <string>

#include "quench/paddleslim.h"

namespace quench {

/// `quant_config` of PaddleSlim 2.5's Analysis, whose defaults are not those of AnalysisPTQ.
struct AnalysisQuantConfig : PtqConfig {
  AnalysisQuantConfig() {
    batch_nums = 10;
    algo = "avg";
  }
};

/// The parameters of Analysis, which took the place of AnalysisPTQ in PaddleSlim 2.5.
struct AnalysisOptions {
  std::string float_model_dir;  ///< as `model_dir` of `quant_post_static`
  /// A model that is quantised already, by whatever tool: `metric_error_analyse` ranks its layers.
  std::string quant_model_dir;
  std::string model_filename;
  std::string params_filename;
  DataOptions data_loader;  ///< as AnalysisPTQ's
  /// Empty: layers are ranked by 1 less the cosine of the outputs.
  EvalFunction eval_function;
  bool resume = false;
  std::string save_dir = "analysis_results";
  AnalysisQuantConfig quant_config;
};

/// PaddleSlim 2.5's class. Its analysis.txt says how much of the metric a layer costs, most first.
class Analysis {
 public:
  explicit Analysis(AnalysisOptions options, Context context = {});
  StatisticsResult statistical_analyse() const;
  SensitivityResult metric_error_analyse() const;
  TargetResult get_target_quant_model(double target_metric) const;

 private:
  AnalysisPtqOptions options_;
  std::string quant_model_dir_;
  Context context_;
};

}  // namespace quench
