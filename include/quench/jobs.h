// SPDX-License-Identifier: Apache-2.0
// Jobs that leave their files to an Outputs, so that those of several jobs appear together.
#pragma once

#include "quench/analyze.h"
#include "quench/files.h"
#include "quench/report.h"

namespace quench {

// Each does what the function of the same name does without `outputs`. Before the work it tells
// `outputs` what it reads and writes, which refuses files that are both; nothing is replaced before
// `outputs.commit()`. Snapshots, which an interrupted job goes on from, are written at once.

QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context, Outputs& outputs);
void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context,
                     const CalibrateOptions& how, Outputs& outputs);
SensitivityResult analyze_sensitivity(const std::string& model_path, const AnalyzeOptions& options,
                                      const SensitivityOptions& how, const Context& context,
                                      Outputs& outputs);
TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context, Outputs& outputs);
StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context, Outputs& outputs);
void write_debug_info(const std::string& model_path, const std::string& quantized_path,
                      const DebugInfoOptions& options, const Context& context, Outputs& outputs);

/// Tells `outputs` what a quantisation reads: the model, samples, labels and statistics.
void reads_job(Outputs& outputs, const std::string& model_path, const QuantizeOptions& options);
/// Tells `outputs` that the HTML report of a job will be written.
void writes_report(Outputs& outputs, const std::string& path);

}  // namespace quench
