// SPDX-License-Identifier: Apache-2.0
// Flags that every kind of analysis takes.
#pragma once

#include <string>

#include "cli/job_flags.h"
#include "cli/json.h"
#include "quench/analyze.h"

namespace quench::cli {

struct AnalyzeFlags {
  JobFlags job;
  std::string eval_data;
  std::string eval_labels;
  std::int64_t eval_limit = 0;
  std::string metric;
  std::string metric_command;
  std::string save_dir = "analysis_results";
  std::string report;
  bool resume = false;
};

/// The model, its calibration data, and how it is quantised.
void add_analyze_flags(CLI::App& app, AnalyzeFlags& flags);
/// What it is evaluated by.
void add_metric_flags(CLI::App& app, AnalyzeFlags& flags);
/// Warns of what a configuration file says without effect. `out`: where a model is written, or "".
AnalyzeOptions analyze_options(const AnalyzeFlags& flags, const Context& context,
                               const std::string& out = "");
/// Tells `outputs` what the flags alone know of: configuration files and the report.
void note_files(Outputs& outputs, const AnalyzeFlags& flags);

/// What the search for a target found, as a table.
void print_target(const TargetResult& result);
Json to_json(const TargetResult& result);
/// Says on stderr that the target was not met; returns the exit code.
int report_missed(const TargetResult& result);

}  // namespace quench::cli
