// SPDX-License-Identifier: Apache-2.0
// What jobs tell an Outputs of the files that they read and write.
#pragma once

#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench {

/// What an analysis reads, besides configuration files.
void reads_analysis(Outputs& outputs, const std::string& model_path, const AnalyzeOptions& options);

/// Runs a job with an Outputs of its own and puts its files in place.
template <typename Job>
auto with_outputs(const Job& job) {
  Outputs outputs;
  if constexpr (std::is_void_v<decltype(job(outputs))>) {
    job(outputs);
    outputs.commit();
  } else {
    auto result = job(outputs);
    outputs.commit();
    return result;
  }
}

}  // namespace quench
