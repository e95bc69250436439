// SPDX-License-Identifier: Apache-2.0
// quench retarget: a model that some tool has quantised, for another runtime.
#include "quench/retarget.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/parse.h"
#include "cli/style.h"
#include "cli/table.h"
#include "quench/formats.h"

namespace quench::cli {
namespace {

/// The widest steps are worth a look, the others are in --json.
constexpr std::size_t kLossesShown = 8;

struct RetargetFlags {
  std::string model;
  std::string out;
  std::string target;
  std::string format = "qdq";
  DataFlags data;
  std::vector<std::string> shapes;
  RetargetOptions options;
  CommonFlags common;
};

double percent(const IntegerShare& share) {
  constexpr double kPercent = 100;
  const auto nodes = static_cast<double>(std::max<std::int64_t>(share.nodes, 1));
  return kPercent * static_cast<double>(share.integers) / nodes;
}

/// "65 of 100 (65.0 %)".
std::string text(const IntegerShare& share) {
  return grouped(share.integers) + " of " + grouped(share.nodes) + " (" + fixed(percent(share), 1) +
         " %)";
}

Json json_of(const IntegerShare& share) {
  return {{"integer_nodes", share.integers}, {"nodes", share.nodes}, {"percent", percent(share)}};
}

Json json_of(const RetargetReport& report) {
  Json json = {{"target", report.target},
               {"before", json_of(report.before)},
               {"after", json_of(report.after)},
               {"kept_scales", report.kept_scales},
               {"wider_scales", report.wider_scales},
               {"finer_scales", report.finer_scales},
               {"neighbour_scales", report.neighbour_scales},
               {"calibrated_scales", report.calibrated_scales},
               {"kept_weights", report.kept_weights},
               {"changed_weights", report.changed_weights},
               {"restored_activations", report.activations},
               {"calibration_samples", report.calibration_samples},
               {"samples", report.samples},
               {"generated", report.generated},
               {"bytes_before", report.bytes_before},
               {"bytes_after", report.bytes_after},
               {"seconds", report.seconds},
               {"warnings", report.warnings}};
  json["float_layers"] = Json::array();
  for (const FloatLayer& layer : report.float_layers) {
    json["float_layers"].push_back(
        {{"node", layer.node}, {"op_type", layer.op_type}, {"reason", layer.reason}});
  }
  json["losses"] = Json::array();
  for (const RetargetLoss& loss : report.losses) {
    json["losses"].push_back({{"name", loss.name},
                              {"weight", loss.weight},
                              {"step", number(loss.step)},
                              {"changed", loss.changed}});
  }
  json["outputs"] = Json::array();
  for (const OutputScores& scores : report.outputs) json["outputs"].push_back(to_json(scores));
  return json;
}

void print_counts(const RetargetReport& report) {
  Table table;
  table.column("what").column("value", Align::Right);
  table.row({"nodes on integers in " + report.target + ", before", text(report.before)});
  table.row({"nodes on integers in " + report.target + ", after", text(report.after)});
  const auto count = [&](const char* what, std::int64_t value) {
    if (value > 0) table.row({what, grouped(value)});
  };
  count("weights with the same integers", report.kept_weights);
  count("weights that changed", report.changed_weights);
  count("activations with the same steps", report.kept_scales);
  count("activations with finer steps", report.finer_scales);
  count("activations with wider steps", report.wider_scales);
  count("activations with a range from their neighbours", report.neighbour_scales);
  count("activations calibrated", report.calibrated_scales);
  count("Relu and Clip nodes that scales stood for", report.activations);
  table.row({"size before, bytes", grouped(report.bytes_before)});
  table.row({"size after, bytes", grouped(report.bytes_after)});
  table.row({"seconds", fixed(report.seconds, 2)});
  print(table.text() + "\n");
}

void print_float_layers(const RetargetReport& report) {
  if (report.float_layers.empty()) return;
  Table table;
  table.column("left in float").column("operator").column("why");
  for (const FloatLayer& layer : report.float_layers) {
    table.row({layer.node, layer.op_type, layer.reason});
  }
  print(table.text() + "\n");
}

void print_losses(const RetargetReport& report) {
  if (report.losses.empty()) return;
  Table table;
  table.column("not kept").column("kind").column("steps wider, times", Align::Right);
  table.column("elements changed, %", Align::Right);
  constexpr double kPercent = 100;
  for (std::size_t i = 0; i < std::min(report.losses.size(), kLossesShown); ++i) {
    const RetargetLoss& loss = report.losses[i];
    table.row({loss.name, loss.weight ? "weight" : "activation", fixed(loss.step, 2),
               loss.weight ? fixed(kPercent * loss.changed, 1) : ""});
  }
  print(table.text());
  if (report.losses.size() > kLossesShown) {
    print("and " + grouped(static_cast<std::int64_t>(report.losses.size() - kLossesShown)) +
          " more\n");
  }
  print("\n");
}

void print_scores(const RetargetReport& report) {
  Table table;
  table.column("output").column("metric").column("value", Align::Right);
  for (const OutputScores& output : report.outputs) {
    for (const auto& [metric, value] : output.scores) {
      table.row({output.output, metric, fixed(value, 4)});
    }
  }
  if (report.outputs.empty()) return;
  print(table.text() + "\nagainst the model that was read, on " + grouped(report.samples) +
        (report.generated ? " generated samples\n" : " samples that calibration did not see\n"));
}

int run(const RetargetFlags& flags) {
  RetargetOptions options = flags.options;
  const std::string own = target_of_output(flags.out);
  options.target = !flags.target.empty() ? flags.target : own.empty() ? "onnxruntime" : own;
  options.data = data_options(flags.data);
  if (!options.data.labels.empty()) {
    throw Error(ErrorKind::Usage,
                "labels change nothing here: the result is held against the model that was read; "
                "leave out --labels, and score it with quench eval");
  }
  options.shapes = parse_shapes("--shape", flags.shapes);
  options.qoperator = flags.format == "qoperator";
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  const RetargetReport report = retarget(flags.model, flags.out, options, context);
  bar.clear();
  for (const std::string& warning : report.warnings) context.warn(warning);
  if (flags.common.json) {
    print_json(json_of(report));
    return kOk;
  }
  print_counts(report);
  print_float_layers(report);
  print_losses(report);
  print_scores(report);
  suggest(flags.common, "see node by node",
          "quench lint " + shell_word(flags.out) + " --target " + report.target);
  return kOk;
}

}  // namespace

Command setup_retarget(CLI::App& root) {
  CLI::App* app = add_verb(root, "retarget",
                           "Write a model that another tool has quantised for another runtime",
                           "quench retarget int8.onnx --target tensorrt -o int8_trt.onnx");
  auto flags = std::make_shared<RetargetFlags>();
  add_model(*app, flags->model);
  app->add_option("-o,--output", flags->out, "Where to write it; the name says the format")
      ->required()
      ->type_name("FILE");
  app->add_option("--target", flags->target,
                  "Runtime (quench list targets); default: that of the format, else onnxruntime")
      ->type_name("NAME");
  app->add_option("--format", flags->format, "Q/DQ nodes or QLinear operators")
      ->check(CLI::IsMember({"qdq", "qoperator"}))
      ->type_name("qdq|qoperator");
  app->add_option("--samples", flags->options.samples, "Generated samples to compare with")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}))
      ->type_name("N");
  app->add_option("--batch", flags->options.batch, "Samples a run, with --data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  app->add_option("--shape", flags->shapes, "Shape of an input with open dimensions")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  add_data_flags(*app, flags->data);
  app->get_option("--batch")->needs("--data");
  app->get_option("--samples")->excludes("--data");
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
