// SPDX-License-Identifier: Apache-2.0
// What jobs read, told to an Outputs.
#include "job/job_files.h"

#include "data/folder.h"

namespace quench {

void reads_job(Outputs& outputs, const std::string& model_path, const QuantizeOptions& options) {
  reads_model(outputs, model_path, "the model");
  data::reads_samples(outputs, options.data);
  for (const std::string& path : options.statistics) outputs.reads(path, "the statistics");
}

void reads_analysis(Outputs& outputs, const std::string& model_path,
                    const AnalyzeOptions& options) {
  reads_job(outputs, model_path, options.quantize);
  data::reads_samples(outputs, options.eval);
}

void writes_report(Outputs& outputs, const std::string& path) {
  outputs.writes(path, "the HTML report");
}

}  // namespace quench
