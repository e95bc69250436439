// SPDX-License-Identifier: Apache-2.0
// Flags that every kind of analysis takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/data_flags.h"
#include "quench/analyze.h"
#include "quench/files.h"

namespace quench::cli {

struct AnalyzeFlags {
  std::string model;
  std::string config;
  std::vector<std::string> statistics;
  std::string target;
  std::string activation;
  std::string weight;
  std::optional<int> weight_bits;
  std::optional<int> activation_bits;
  std::vector<std::string> skip_nodes;
  std::vector<std::string> op_types;
  std::vector<std::string> shapes;
  std::int64_t batch = 8;
  DataFlags data;
  std::string eval_data;
  std::string eval_labels;
  std::int64_t eval_limit = 0;
  std::string metric;
  std::string metric_command;
  std::string save_dir = "analysis_results";
  std::string report;
  bool resume = false;
  CommonFlags common;
};

/// The model, its calibration data, and how it is quantised.
void add_analyze_flags(CLI::App& app, AnalyzeFlags& flags);
/// What it is judged by.
void add_metric_flags(CLI::App& app, AnalyzeFlags& flags);
AnalyzeOptions analyze_options(const AnalyzeFlags& flags);
/// Tells `outputs` what the flags alone know of: configuration files and the report.
void note_files(Outputs& outputs, const AnalyzeFlags& flags);

/// What the search for a target found, as a table.
void print_target(const TargetResult& result);
/// Says on stderr that the target was not met; returns the exit code.
int report_missed(const TargetResult& result);

}  // namespace quench::cli
