// SPDX-License-Identifier: Apache-2.0
// Reports of a quantisation, and the chain that meets a metric.
#include "cli/quantize_extras.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/analyze_flags.h"
#include "cli/errors.h"

namespace quench::cli {

void add_extra_flags(CLI::App& app, QuantizeExtras& extras) {
  app.add_option("--report", extras.report, "Write an HTML report of layers, ranges and errors")
      ->type_name("HTML");
  app.add_option("--report-json", extras.report_json, "Write the report as JSON too")
      ->type_name("FILE");
  CLI::Option* metric =
      app.add_option("--target-metric", extras.target_metric,
                     "Leave the worst layers in float until this metric is --at-least");
  metric->type_name("NAME");
  app.add_option("--at-least", extras.at_least, "What --target-metric must reach")
      ->needs(metric)
      ->type_name("X");
}

int quantize_to_target(const std::string& model, const QuantizeOptions& options,
                       const QuantizeExtras& extras, const Context& context, Outputs& outputs,
                       bool json) {
  AnalyzeOptions analysis;
  analysis.quantize = options;
  analysis.metric = extras.target_metric;
  analysis.save_dir = extras.out + ".analysis";
  const TargetResult result = analyze_target(
      model, analysis, {.at_least = extras.at_least, .out_path = extras.out}, context, outputs);
  if (context.writes()) {
    if (json) {
      print_json(to_json(result));
    } else {
      print_target(result);
    }
  }
  if (!result.met) return report_missed(result);
  if (!extras.report_json.empty()) write_json(to_json(result), extras.report_json, outputs);
  outputs.commit();
  return kOk;
}

}  // namespace quench::cli
