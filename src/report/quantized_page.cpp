// SPDX-License-Identifier: Apache-2.0
// What the HTML report shows of a model that was quantised before, and of its layers' sensitivity.
#include <filesystem>

#include "analyze/quantized_layers.h"
#include "base/format.h"
#include "report/histograms.h"
#include "report/job_page.h"

namespace quench::report {

ReportData page_of(const analyze::QuantizedLayers& quantized, const SensitivityResult& result,
                   const std::string& path, const SensitivityOptions& how,
                   const AnalyzeOptions& options) {
  ReportData data;
  data.title = format("Quench: {}", std::filesystem::path(path).filename().string());
  data.command = options.quantize.command;
  data.summary = {{"model", path},
                  {"float model", how.float_model},
                  {"quantised layers", format("{}", quantized.layers().size())}};
  if (!result.strangers.empty()) {
    data.summary.emplace_back("layers that the float model does not have",
                              format("{}", fmt::join(result.strangers, ", ")));
  }
  data.settings = {
      {"metric", result.metric},
      {"data", options.eval.path.empty() ? options.quantize.data.path : options.eval.path},
      {"samples", format("{}", result.samples)}};
  for (std::size_t i = 0; i < quantized.layers().size(); ++i) {
    const analyze::Layer& layer = quantized.layers()[i];
    data.layers.push_back({.name = layer.name,
                           .op_type = layer.op_type,
                           .kind = "integer",
                           .bits = quantized.bits(i)});
    data.layers.back().weight = weight_histogram(layer.weight, quantized.float_weight(i), nullptr);
  }
  add_sensitivity(result, data);
  return data;
}

}  // namespace quench::report
