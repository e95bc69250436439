// SPDX-License-Identifier: Apache-2.0
// quench quantize and quench calibrate: a float model and data in, an 8-bit model out.
#include "quench/quantize.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/parse.h"
#include "cli/table.h"
#include "cli/weight_flags.h"

namespace quench::cli {
namespace {

struct QuantizeFlags {
  std::string model;
  std::string out;
  std::vector<std::string> statistics;
  std::string config;
  std::string target;
  std::string activation;
  std::string weight;
  std::vector<std::string> skip_nodes;
  std::vector<std::string> op_types;
  bool per_layer = false;
  bool no_bias_correction = false;
  bool per_channel = false;
  std::string bias_correction;
  std::string equalize;
  std::vector<std::string> shapes;
  std::optional<std::int64_t> min_weight_size;
  std::optional<std::int64_t> min_weight_channel;
  std::string format = "qdq";
  std::int64_t batch = 8;
  WeightFlags weights;
  DataFlags data;
  CommonFlags common;
};

void apply_tuning(const QuantizeFlags& flags, QuantizeOptions& options) {
  static const std::map<std::string, BiasCorrection> corrections = {{"fast", BiasCorrection::Fast},
                                                                    {"full", BiasCorrection::Full},
                                                                    {"auto", BiasCorrection::Auto}};
  static const std::map<std::string, Equalization> equalizations = {
      {"never", Equalization::Never},
      {"always", Equalization::Always},
      {"auto", Equalization::Auto}};
  if (!flags.bias_correction.empty()) {
    options.bias_correction = flags.bias_correction != "none";
    options.weight.bias_correction = options.bias_correction;
    if (options.bias_correction) options.correction = corrections.at(flags.bias_correction);
  }
  if (!flags.equalize.empty()) options.equalization = equalizations.at(flags.equalize);
}

QuantizeOptions options_of(const QuantizeFlags& flags) {
  QuantizeOptions options;
  if (!flags.config.empty()) options = read_config(flags.config);
  options.data = data_options(flags.data, options.data);
  options.statistics = flags.statistics;
  options.batch = flags.batch;
  if (flags.no_bias_correction) {
    options.bias_correction = false;
    options.weight.bias_correction = false;
  }
  apply_tuning(flags, options);
  if (!flags.shapes.empty()) options.input_shapes = parse_shapes("--shape", flags.shapes);
  if (flags.min_weight_size) options.min_quant_weight_size = *flags.min_weight_size;
  if (flags.min_weight_channel) options.min_quant_weight_channel = *flags.min_weight_channel;
  options.qoperator = flags.format == "qoperator";
  QuantConfig& config = options.config;
  if (!flags.target.empty()) config.target = flags.target;
  if (!flags.skip_nodes.empty()) config.skip_quant_node = split_list(flags.skip_nodes);
  config.quantizable_op_type = split_list(flags.op_types);
  if (!flags.activation.empty()) config.global.activation_observer = flags.activation;
  if (!flags.weight.empty()) config.global.weight_observer = flags.weight;
  if (flags.per_layer) config.global.per_channel = false;
  if (flags.per_channel) config.global.per_channel = true;
  apply(flags.weights, options);
  return options;
}

Json report_json(const QuantizeReport& report) {
  Json json = {{"calibration_samples", report.calibration_samples},
               {"judged_samples", report.judged_samples},
               {"integer_nodes", report.integer_nodes},
               {"pass_through_nodes", report.pass_through_nodes},
               {"corrected_layers", report.corrected_layers},
               {"equalized_groups", report.equalized_groups},
               {"bytes_before", report.bytes_before},
               {"bytes_after", report.bytes_after},
               {"seconds", report.seconds},
               {"warnings", report.warnings}};
  json["outputs"] = Json::array();
  for (const OutputScores& scores : report.outputs) json["outputs"].push_back(to_json(scores));
  json["weights"] = weights_json(report);
  json["float_layers"] = Json::array();
  for (const FloatLayer& layer : report.float_layers) {
    json["float_layers"].push_back(
        {{"node", layer.node}, {"op_type", layer.op_type}, {"reason", layer.reason}});
  }
  return json;
}

/// Layers left in float, those with one type and reason counted together.
void print_float_layers(const QuantizeReport& report) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const FloatLayer& layer : report.float_layers) ++counts[{layer.op_type, layer.reason}];
  if (counts.empty()) return;
  Table table;
  table.column("left in float").column("nodes", Align::Right).column("why");
  for (const auto& [key, count] : counts) table.row({key.first, grouped(count), key.second});
  print(table.text() + "\n");
}

void print_report(const QuantizeReport& report) {
  Table table;
  table.column("what").column("value", Align::Right);
  if (!report.weights.empty()) print_weights(report);
  table.row({"nodes on integers", grouped(report.integer_nodes)});
  table.row({"nodes that only move integers", grouped(report.pass_through_nodes)});
  table.row({"nodes in float", grouped(static_cast<std::int64_t>(report.float_layers.size()))});
  table.row(
      {"layers with corrected bias", grouped(static_cast<std::int64_t>(report.corrected_layers))});
  if (report.equalized_groups > 0) {
    table.row({"groups of equalised channels",
               grouped(static_cast<std::int64_t>(report.equalized_groups))});
  }
  table.row({"size before, bytes", grouped(report.bytes_before)});
  table.row({"size after, bytes", grouped(report.bytes_after)});
  table.row({"samples calibrated with", grouped(report.calibration_samples)});
  table.row({"seconds", fixed(report.seconds, 2)});
  print(table.text() + "\n");
  print_float_layers(report);
  if (report.outputs.empty()) return;
  Table scores;
  scores.column("output").column("metric").column("value", Align::Right);
  for (const OutputScores& output : report.outputs) {
    for (const auto& [metric, value] : output.scores) {
      scores.row({output.output, metric, fixed(value, 4)});
    }
  }
  print(scores.text());
  print("\nagainst the float model, on " + grouped(report.judged_samples) +
        " samples that calibration did not see\n");
}

int run_quantize(const QuantizeFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  const QuantizeReport report = quantize(flags.model, flags.out, options_of(flags), context);
  bar.clear();
  for (const std::string& warning : report.warnings) context.warn(warning);
  if (flags.common.json) {
    print_json(report_json(report));
  } else {
    print_report(report);
  }
  return kOk;
}

int run_calibrate(const QuantizeFlags& flags) {
  ProgressBar bar;
  calibrate_model(flags.model, flags.out, options_of(flags), make_context(flags.common, bar));
  bar.clear();
  return kOk;
}

void add_shared(CLI::App& app, QuantizeFlags& flags, const char* out_help) {
  app.add_option("model", flags.model, "Model file")->required()->type_name("MODEL");
  app.add_option("-o,--output", flags.out, out_help)->required()->type_name("FILE");
  app.add_option("--config", flags.config, "INI file of converter_lite; flags override it")
      ->type_name("INI");
  app.add_option("--shape", flags.shapes, "Shape of an input, as x=1,3,224,224")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  app.add_option("--min-weight-size", flags.min_weight_size,
                 "Leave layers in float whose weight has no more elements")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--min-weight-channel", flags.min_weight_channel,
                 "Leave convolutions in float that have no more output channels")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--target", flags.target, "Runtime that will run it (see quench list targets)")
      ->type_name("NAME");
  app.add_option("--skip-node", flags.skip_nodes, "Names of nodes to leave in float")
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--op-types", flags.op_types, "Quantise only these operator types")
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--batch", flags.batch, "Samples a run")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  add_data_flags(app, flags.data);
  add_common_flags(app, flags.common, Work::Runs);
}

}  // namespace

Command setup_quantize(CLI::App& root) {
  CLI::App* app = add_verb(root, "quantize", "Turn a float model into an 8-bit one",
                           "quench quantize model.onnx -o int8.onnx --data images.npy");
  auto flags = std::make_shared<QuantizeFlags>();
  add_shared(*app, *flags, "Where to write the quantised model");
  app->add_option("--stats", flags->statistics,
                  "Statistics of quench calibrate, of all these files together: no data pass")
      ->type_name("FILES");
  app->add_option("--activation-observer", flags->activation,
                  "How activation ranges are chosen (see quench list observers)")
      ->type_name("NAME");
  app->add_option("--weight-observer", flags->weight, "How weight ranges are chosen")
      ->type_name("NAME");
  CLI::Option* layer =
      app->add_flag("--per-layer", flags->per_layer, "One grid a weight instead of one a channel");
  app->add_flag("--per-channel", flags->per_channel, "One grid a channel, whatever --config says")
      ->excludes(layer);
  CLI::Option* leave =
      app->add_flag("--no-bias-correction", flags->no_bias_correction, "Leave biases as they are");
  app->add_option("--bias-correction", flags->bias_correction,
                  "none, fast, full, or auto: full where a layer's SQNR is below 30 dB")
      ->check(CLI::IsMember({"none", "fast", "full", "auto"}))
      ->expected(0, 1)
      ->default_str("auto")
      ->type_name("KIND")
      ->excludes(leave);
  app->add_option("--equalize", flags->equalize,
                  "Scale channels between layers: never, always, or auto: where it helps")
      ->check(CLI::IsMember({"never", "always", "auto"}))
      ->type_name("WHEN");
  add_weight_flags(*app, flags->weights);
  app->add_option("--format", flags->format, "qdq or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}))
      ->type_name("NAME");
  return {app, [flags] { return run_quantize(*flags); }};
}

Command setup_calibrate(CLI::App& root) {
  CLI::App* app = add_verb(root, "calibrate", "Collect activation statistics for quantize --stats",
                           "quench calibrate model.onnx -o model.stats --data images.npy");
  auto flags = std::make_shared<QuantizeFlags>();
  add_shared(*app, *flags, "Where to write the statistics");
  return {app, [flags] { return run_calibrate(*flags); }};
}

}  // namespace quench::cli
