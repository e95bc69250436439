// SPDX-License-Identifier: Apache-2.0
// What every analysis starts from: a job that is tuned, and a way to evaluate what it could make.
#pragma once

#include <memory>

#include "analyze/evaluation.h"
#include "analyze/simulator.h"
#include "base/made_folder.h"
#include "job/job.h"
#include "quench/jobs.h"

namespace quench::job {

/// Made by `start_analysis`.
struct Analysis : analyze::Evaluation {
  Analysis(const std::string& model_path, const QuantizeOptions& options, const Context& context)
      : job(model_path, options, context) {}

  Job job;
  std::unique_ptr<analyze::Simulator> simulator;
  double calibration_seconds = 0;
};

/// The files of a ranking, each checked before the work.
struct RankingFiles {
  RankingFiles(const std::string& model_path, const AnalyzeOptions& options, const Context& context,
               Outputs& outputs);

  MadeFolder folder;
  std::string table;
  std::string checkpoint;
};

/// Ranked layers as PaddleSlim's `analysis.txt` has them.
void write_analysis(const SensitivityResult& result, const std::string& path, Outputs& outputs);

/// `analyze_sensitivity` of a model that is quantised already.
SensitivityResult analyze_quantized(const std::string& quantized_path,
                                    const AnalyzeOptions& options, const SensitivityOptions& how,
                                    const Context& context, Outputs& outputs);

/// Which parts of an analysis are wanted.
enum class AnalysisNeeds { Statistics, Evaluation };

/// Runs a job until it is tuned; nothing is written. `context` must outlive the result. `out_path`:
/// as the job's.
std::unique_ptr<Analysis> start_analysis(const std::string& model_path,
                                         const AnalyzeOptions& options, AnalysisNeeds needs,
                                         const Context& context, const std::string& out_path = "");

}  // namespace quench::job
