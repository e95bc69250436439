// SPDX-License-Identifier: Apache-2.0
// Flags that every kind of analysis takes.
#include "cli/analyze_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>

#include "quench/error.h"
#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

/// Outputs are compared as often as there are batches, so they are larger than those of `quantize`.
QuantizeOptions analysis_defaults() {
  QuantizeOptions options;
  options.batch = 8;
  return options;
}

}  // namespace

void add_analyze_flags(CLI::App& app, AnalyzeFlags& flags) {
  app.add_option("-o,--save-dir", flags.save_dir, "Folder for what is found")->type_name("DIR");
  app.add_option("--report", flags.report, "Write an HTML report, too")->type_name("HTML");
  add_job_flags(app, flags.job, kForAnalyze, analysis_defaults());
  add_elastic_flag(app, flags.job.common);
}

void add_metric_flags(CLI::App& app, AnalyzeFlags& flags) {
  app.add_option("--eval-data", flags.eval_data,
                 "Samples to evaluate with, prepared as --data says; default: those of --data")
      ->type_name("PATH");
  app.add_option("--eval-labels", flags.eval_labels, "Their labels")->type_name("FILE");
  app.add_option("--eval-limit", flags.eval_limit, "Use the first N of them")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  CLI::Option* metric = app.add_option("--metric", flags.metric,
                                       "One of quench list metrics; default: top1 with labels, "
                                       "else sqnr against the float model");
  metric->type_name("NAME");
  app.add_option("--metric-command", flags.metric_command,
                 "Shell command that prints a number, higher is better; {model} is the file")
      ->type_name("COMMAND")
      ->excludes(metric);
}

void note_files(Outputs& outputs, const AnalyzeFlags& flags) {
  reads_configuration(outputs, flags.job);
  if (flags.report.empty()) return;
  // The report may lie in the folder, which the analysis makes; it says so where it cannot.
  std::error_code ignored;
  std::filesystem::create_directories(flags.save_dir, ignored);
}

AnalyzeOptions analyze_options(const AnalyzeFlags& flags, const Context& context,
                               const std::string& out) {
  AnalyzeOptions options;
  QuantizeOptions& quantize = options.quantize;
  quantize = options_of(
      flags.job, for_runtime(out.empty() ? target_of_model(flags.job.model) : target_of_output(out),
                             analysis_defaults()));
  refuse_idle_options(flags.job.options.given(), quantize);
  for (const std::string& note : quantize.notes) context.warn(note);
  quantize.report_save_path = flags.report;
  options.eval = quantize.data;
  options.eval.path = flags.eval_data;
  if (!flags.eval_data.empty()) {
    options.eval.labels = flags.eval_labels;
    options.eval.limit = flags.eval_limit;
  } else if (!flags.eval_labels.empty() || flags.eval_limit > 0) {
    // The calibration data are the validation set too: with these labels, and as many.
    options.eval.path = quantize.data.path;
    if (!flags.eval_labels.empty()) options.eval.labels = flags.eval_labels;
    if (flags.eval_limit > 0) options.eval.limit = flags.eval_limit;
  }
  options.metric = flags.metric;
  options.metric_command = flags.metric_command;
  options.save_dir = flags.save_dir;
  options.resume = flags.resume;
  return options;
}

}  // namespace quench::cli
