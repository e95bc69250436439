// SPDX-License-Identifier: Apache-2.0
// quench analyze: where the error is, and which layers to leave in float.
#include "quench/analyze.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <memory>
#include <optional>

#include "cli/analyze_flags.h"
#include "cli/commands.h"
#include "cli/distributed.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/json.h"
#include "cli/table.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

/// Options of a quantisation mean nothing to a model that is quantised already: those of samples
/// are left.
void refuse_quantizing_options(const std::vector<std::string_view>& given) {
  for (const std::string_view name : given) {
    const bool samples = (find_option(name).jobs & kForSamples) != 0 || name == "batch";
    if (samples) continue;
    throw Error(ErrorKind::Usage, "--" + std::string(name) +
                                      " says how to quantise, but with --float the model is "
                                      "quantised already: leave it out");
  }
}

struct SensitivityFlags {
  AnalyzeFlags shared;
  SensitivityOptions how;
  bool whole_runs = false;
};

Json result_json(const SensitivityResult& result) {
  Json json = {{"metric", result.metric},
               {"float", number(result.float_metric)},
               {"quantized", number(result.quantized_metric)},
               {"samples", result.samples},
               {"resumed", result.resumed},
               {"seconds", result.seconds},
               {"calibration_seconds", result.calibration_seconds},
               {"not_in_float_model", result.strangers}};
  json["layers"] = Json::array();
  for (const LayerSensitivity& layer : result.layers) {
    json["layers"].push_back({{"layer", layer.layer},
                              {"op_type", layer.op_type},
                              {"weight", layer.weight},
                              {"metric", number(layer.metric)},
                              {"sqnr", number(layer.sqnr)},
                              {"samples", layer.samples}});
  }
  return json;
}

void print_result(const SensitivityResult& result, const std::string& folder) {
  constexpr std::size_t kShown = 20;
  Table table;
  table.column(result.reverse ? "all quantised but" : "only this layer quantised")
      .column("operator")
      .column(result.metric, Align::Right)
      .column("output SQNR, dB", Align::Right)
      .column("samples", Align::Right);
  for (std::size_t i = 0; i < std::min(kShown, result.layers.size()); ++i) {
    const LayerSensitivity& layer = result.layers[i];
    table.row({layer.layer, layer.op_type, fixed(layer.metric, 4), fixed(layer.sqnr, 2),
               grouped(layer.samples)});
  }
  print(table.text());
  print("\n" + grouped(static_cast<std::int64_t>(result.layers.size())) + " layers, " +
        result.metric + " in float " + fixed(result.float_metric, 4) + ", all quantised " +
        fixed(result.quantized_metric, 4) + ", " + fixed(result.seconds, 1) +
        " s\nall of them, the one that costs most first: " + folder + "/analysis.txt\n");
}

int run_sensitivity(const SensitivityFlags& flags) {
  ProgressBar bar;
  refuse_tuning_of_parts(flags.shared.job.options.given());
  const Context context = make_context(flags.shared.job.common, bar);
  const AnalyzeOptions options = analyze_options(flags.shared, context);
  SensitivityOptions how = flags.how;
  how.partial_runs = !flags.whole_runs;
  if (!how.float_model.empty()) refuse_quantizing_options(flags.shared.job.options.given());
  Outputs outputs;
  note_files(outputs, flags.shared);
  const SensitivityResult result =
      analyze_sensitivity(flags.shared.job.model, options, how, context, outputs);
  outputs.commit();
  bar.clear();
  if (flags.shared.job.common.json) {
    print_json(result_json(result));
  } else {
    print_result(result, options.save_dir);
  }
  suggest_after("sensitivity", flags.shared.job.common,
                {{"model", how.float_model.empty() ? flags.shared.job.model : how.float_model},
                 {"data", options.quantize.data.path},
                 {"layer", result.layers.empty() ? "" : result.layers.front().layer}});
  return kOk;
}

Command setup_sensitivity(CLI::App& analyze) {
  CLI::App* app = add_verb(analyze, "sensitivity", "Quantise one layer at a time and rank them",
                           "quench analyze sensitivity model.onnx --data images.npy");
  auto flags = std::make_shared<SensitivityFlags>();
  add_analyze_flags(*app, flags->shared);
  add_metric_flags(*app, flags->shared);
  CLI::Option* plain =
      app->add_option("--float", flags->how.float_model,
                      "The model is quantised already, and this is what it was made from: give one "
                      "layer at a time its float weights back");
  plain->type_name("MODEL");
  app->add_flag("--reverse", flags->how.reverse, "Quantise all layers but one instead")
      ->excludes(plain);
  app->add_flag("--quick", flags->how.quick,
                "Few samples first, more only for layers that could be among the worst: an eighth "
                "of the runs at most")
      ->excludes(plain);
  app->add_option("--worst", flags->how.worst, "How many worst layers --quick looks for")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app->add_flag("--whole-runs", flags->whole_runs,
                "Run the whole model for every layer, without cached values")
      ->excludes(plain);
  app->add_flag("--resume", flags->shared.resume, "Go on where an interrupted run stopped");
  add_tensor_parallel_flag(*app)->excludes("--elastic");
  return {app, [flags] { return run_sensitivity(*flags); }};
}

struct TargetFlags {
  AnalyzeFlags shared;
  TargetOptions how;
};

int run_target(const TargetFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags.shared.job.common, bar);
  Outputs outputs;
  note_files(outputs, flags.shared);
  const TargetResult result = analyze_target(
      flags.shared.job.model, analyze_options(flags.shared, context, flags.how.out_path), flags.how,
      context, outputs);
  outputs.commit();
  bar.clear();
  if (flags.shared.job.common.json) {
    print_json(to_json(result));
  } else {
    print_target(result);
  }
  if (!result.met) return report_missed(result);
  suggest_after("target", flags.shared.job.common,
                {{"model", flags.shared.job.model}, {"out", flags.how.out_path}});
  return kOk;
}

Command setup_target(CLI::App& analyze) {
  CLI::App* app = add_verb(analyze, "target", "Find the most quantised model that meets a metric",
                           "quench analyze target model.onnx --data images.npy --metric sqnr "
                           "--at-least 10");
  auto flags = std::make_shared<TargetFlags>();
  add_analyze_flags(*app, flags->shared);
  add_metric_flags(*app, flags->shared);
  app->add_option("--at-least", flags->how.at_least, "What the metric must reach")
      ->required()
      ->type_name("X");
  app->add_option("--raise-bits", flags->how.raise_bits,
                  "Give weights of the worst layers N bits before leaving layers in float")
      ->check(CLI::Range(2, 16))
      ->type_name("N");
  app->add_flag("--one-by-one", flags->how.one_by_one,
                "Leave out one layer after the other instead of searching: slow, to compare with");
  app->add_option("--model-out", flags->how.out_path,
                  "Where to write the model; default: model.onnx or model.pdmodel in "
                  "target_quant_model there")
      ->type_name("FILE");
  return {app, [flags] { return run_target(*flags); }};
}

int run_statistics(const AnalyzeFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags.job.common, bar);
  const AnalyzeOptions options = analyze_options(flags, context);
  Outputs outputs;
  note_files(outputs, flags);
  const StatisticsResult result = analyze_statistics(flags.job.model, options, context, outputs);
  outputs.commit();
  bar.clear();
  if (flags.job.common.json) {
    print_json({{"layers", result.layers},
                {"samples", result.samples},
                {"calibration_seconds", result.calibration_seconds},
                {"seconds", result.seconds}});
  } else {
    print(grouped(static_cast<std::int64_t>(result.layers)) + " layers, " +
          grouped(result.samples) + " samples, " + fixed(result.seconds, 1) + " s\n" +
          options.save_dir + "/statistic.csv and eight PDF files beside it\n");
  }
  suggest_after("statistics", flags.job.common, {{"folder", options.save_dir}});
  return kOk;
}

Command setup_statistics(CLI::App& analyze) {
  CLI::App* app =
      add_verb(analyze, "statistics", "Tabulate and draw tensors before and after quantisation",
               "quench analyze statistics model.onnx --data images.npy");
  auto flags = std::make_shared<AnalyzeFlags>();
  add_analyze_flags(*app, *flags);
  return {app, [flags] { return run_statistics(*flags); }};
}

}  // namespace

Json to_json(const TargetResult& result) {
  return {{"metric", result.metric},
          {"at_least", number(result.at_least)},
          {"met", result.met},
          {"value", number(result.value)},
          {"low", number(result.confidence.low)},
          {"high", number(result.confidence.high)},
          {"float", number(result.float_metric)},
          {"quantized", number(result.quantized_metric)},
          {"in_float", result.in_float},
          {"weight_bits", result.weight_bits},
          {"layers", result.layers},
          {"tried", result.tried},
          {"evaluations", result.evaluations},
          {"one_by_one", result.one_by_one},
          {"samples", result.samples},
          {"seconds", result.seconds}};
}

void print_target(const TargetResult& result) {
  Table table;
  table.column("what").column("value", Align::Right);
  table.row({result.metric + " in float", fixed(result.float_metric, 4)});
  table.row({result.metric + " with every layer quantised", fixed(result.quantized_metric, 4)});
  table.row({result.met ? result.metric + " found" : "best " + result.metric + " found",
             fixed(result.value, 4)});
  if (result.confidence.low != result.confidence.high) {
    table.row({"95 % confidence",
               fixed(result.confidence.low, 2) + " to " + fixed(result.confidence.high, 2)});
  }
  table.row({"layers", grouped(static_cast<std::int64_t>(result.layers))});
  table.row({"left in float", grouped(static_cast<std::int64_t>(result.in_float.size()))});
  table.row({"with more bits", grouped(static_cast<std::int64_t>(result.weight_bits.size()))});
  table.row({"passes over the data", fixed(result.evaluations, 1)});
  table.row({"one by one it would take", grouped(result.one_by_one)});
  print(table.text());
  for (const std::string& layer : result.in_float) print("float: " + layer + "\n");
}

int report_missed(const TargetResult& result) {
  report_error(result.metric + " " + fixed(result.at_least, 4) +
                   " cannot be met: the float model has " + fixed(result.float_metric, 4) +
                   ", the best found is " + fixed(result.value, 4),
               kBarMissed);
  return kBarMissed;
}

Command setup_analyze(CLI::App& root) {
  CLI::App* app = add_verb(root, "analyze", "Find the layers that cost accuracy",
                           "quench analyze sensitivity model.onnx --data images.npy");
  app->require_subcommand(1);
  auto kinds = std::make_shared<std::vector<Command>>();
  kinds->push_back(setup_sensitivity(*app));
  kinds->push_back(setup_target(*app));
  kinds->push_back(setup_statistics(*app));
  return {app, [kinds] {
            for (const Command& kind : *kinds) {
              if (kind.app->parsed()) return kind.run();
            }
            return static_cast<int>(kUsage);
          }};
}

}  // namespace quench::cli
