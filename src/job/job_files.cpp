// SPDX-License-Identifier: Apache-2.0
// What jobs read, told to an Outputs.
#include "job/job_files.h"

#include <filesystem>

#include "data/folder.h"
#include "data/paths.h"

namespace quench {

void reads_samples(Outputs& outputs, const DataOptions& data) {
  if (data.source != nullptr) return;
  for (const std::string& path : data::files_of(data.path)) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      outputs.reads_folder(path, "the samples", [kind = data.kind](const std::string& name) {
        return data::may_be_sample(name, kind);
      });
    } else {
      outputs.reads(path, "the samples");
    }
  }
  outputs.reads(data.labels, "the labels");
}

void reads_job(Outputs& outputs, const std::string& model_path, const QuantizeOptions& options) {
  reads_model(outputs, model_path, "the model");
  reads_samples(outputs, options.data);
  for (const std::string& path : options.statistics) outputs.reads(path, "the statistics");
}

void reads_analysis(Outputs& outputs, const std::string& model_path,
                    const AnalyzeOptions& options) {
  reads_job(outputs, model_path, options.quantize);
  reads_samples(outputs, options.eval);
}

void writes_report(Outputs& outputs, const std::string& path) {
  outputs.writes(path, "the HTML report");
}

}  // namespace quench
