// SPDX-License-Identifier: Apache-2.0
// What the HTML report shows of a job: taken from what the job found, never computed again.
#pragma once

#include "quench/analyze.h"
#include "quench/files.h"
#include "report/html_report.h"
#include "tune/state.h"

namespace quench::analyze {
class QuantizedLayers;
}

namespace quench::report {

/// Layers, graph, settings and summary of a job that has been tuned; `quantized` is what it made,
/// with the float model's names.
ReportData page_of(const tune::State& state, const Model& quantized, const std::string& model_path);
/// Layers of a model that was quantised before, with their sensitivity; `path` is its file.
ReportData page_of(const analyze::QuantizedLayers& quantized, const SensitivityResult& result,
                   const std::string& path, const SensitivityOptions& how,
                   const AnalyzeOptions& options);
/// Times the float model and the `written` one on a sample, as this machine runs them.
void add_speed(const tune::State& state, const Model& written, ReportData& data);
void add_sensitivity(const SensitivityResult& result, ReportData& data);
void write_page(const ReportData& data, const std::string& path, Outputs& outputs);

}  // namespace quench::report
