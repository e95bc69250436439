// SPDX-License-Identifier: Apache-2.0
// Flags that every kind of analysis takes.
#include "cli/analyze_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <filesystem>

#include "cli/parse.h"
#include "quench/converter_lite.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

void add_quantize_flags(CLI::App& app, AnalyzeFlags& flags) {
  app.add_option("--target", flags.target, "Runtime that will run it (see quench list targets)")
      ->type_name("NAME");
  app.add_option("--activation-observer", flags.activation,
                 "How activation ranges are chosen (see quench list observers)")
      ->type_name("NAME");
  app.add_option("--weight-observer", flags.weight, "How weight ranges are chosen")
      ->type_name("NAME");
  with_default(app.add_option("--weight-bits", flags.weight_bits, "Bits of weights"),
               QuantSpec{}.bits)
      ->check(CLI::Range(2, 16))
      ->type_name("N");
  with_default(app.add_option("--activation-bits", flags.activation_bits, "Bits of activations"),
               QuantSpec{}.bits)
      ->check(CLI::Range(2, 16))
      ->type_name("N");
  app.add_option("--skip-node", flags.skip_nodes, "Names of nodes to leave in float")
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--op-types", flags.op_types, "Quantise only these operator types")
      ->allow_extra_args(false)
      ->type_name("LIST");
}

}  // namespace

void add_analyze_flags(CLI::App& app, AnalyzeFlags& flags) {
  app.add_option("model", flags.model, "Model file")->required()->type_name("MODEL");
  app.add_option("-o,--save-dir", flags.save_dir, "Folder for what is found")->type_name("DIR");
  app.add_option("--config", flags.config, "INI file of converter_lite; flags override it")
      ->type_name("INI");
  app.add_option("--stats", flags.statistics, "Statistics of quench calibrate: no data pass")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--shape", flags.shapes, "Shape of an input, as x=1,3,224,224")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  app.add_option("--batch", flags.batch, "Samples a run")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  app.add_option("--report", flags.report, "Write an HTML report, too")->type_name("HTML");
  add_quantize_flags(app, flags);
  add_data_flags(app, flags.data);
  add_common_flags(app, flags.common, Work::Runs);
}

void add_metric_flags(CLI::App& app, AnalyzeFlags& flags) {
  app.add_option("--eval-data", flags.eval_data,
                 "Samples to judge by, prepared as --data says; default: those of --data")
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
  for (const std::string& path : {flags.config, flags.data.config}) {
    outputs.reads(path, "the settings");
  }
  if (flags.report.empty()) return;
  // The report may lie in the folder, which the analysis makes; it says so where it cannot.
  std::error_code ignored;
  std::filesystem::create_directories(flags.save_dir, ignored);
  writes_report(outputs, flags.report);
}

AnalyzeOptions analyze_options(const AnalyzeFlags& flags) {
  AnalyzeOptions options;
  QuantizeOptions& quantize = options.quantize;
  if (!flags.config.empty()) quantize = read_config(flags.config);
  quantize.data = data_options(flags.data, quantize.data);
  quantize.statistics = split_list(flags.statistics);
  quantize.batch = flags.batch;
  if (!flags.shapes.empty()) quantize.input_shapes = parse_shapes("--shape", flags.shapes);
  QuantConfig& config = quantize.config;
  if (!flags.target.empty()) config.target = flags.target;
  if (!flags.skip_nodes.empty()) config.skip_quant_node = split_list(flags.skip_nodes);
  if (!flags.op_types.empty()) config.quantizable_op_type = split_list(flags.op_types);
  if (!flags.activation.empty()) config.global.activation_observer = flags.activation;
  if (!flags.weight.empty()) config.global.weight_observer = flags.weight;
  if (flags.weight_bits) config.global.weight_bits = flags.weight_bits;
  if (flags.activation_bits) config.global.activation_bits = flags.activation_bits;
  options.eval = quantize.data;
  options.eval.path = flags.eval_data;
  if (!flags.eval_data.empty()) {
    options.eval.labels = flags.eval_labels;
    options.eval.limit = flags.eval_limit;
  } else if (!flags.eval_labels.empty() || flags.eval_limit > 0) {
    // The calibration data judge: with these labels, and as many of them.
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
