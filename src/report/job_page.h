// SPDX-License-Identifier: Apache-2.0
// What the HTML report shows of a job: taken from what the job found, never computed again.
#pragma once

#include "quench/files.h"
#include "report/html_report.h"
#include "tune/state.h"

namespace quench::report {

/// Layers, graph, settings and summary of a job that has been tuned; `quantized` is what it made,
/// with the float model's names.
ReportData page_of(const tune::State& state, const Model& quantized, const std::string& model_path);
/// Of a weight that is in float.
ReportHistogram histogram_of(const std::string& name, const Tensor& weight);
void add_sensitivity(const SensitivityResult& result, ReportData& data);
void write_page(const ReportData& data, const std::string& path, Outputs& outputs);

}  // namespace quench::report
