// SPDX-License-Identifier: Apache-2.0
// quench eval: how good a model is on data.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "cli/bars.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/distributed.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/parse.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

struct EvalFlags {
  std::string model;
  std::string samples;
  DataFlags data;
  std::vector<std::string> metrics;
  std::string reference;
  std::string output;
  std::int64_t batch = 8;
  Dequantize dequantize = Dequantize::AtLoad;
  Rounding rounding = Rounding::Once;
  std::vector<std::string> at_least;
  std::vector<std::string> at_most;
  CommonFlags common;
};

double rate(const EvaluateResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
}

/// The scores of the first output stand at the top, where scripts look for them.
Json result_json(const std::string& model, const EvaluateResult& result) {
  Json json = {{"model", model},
               {"samples", result.samples},
               {"batch", result.batch},
               {"seconds", result.seconds},
               {"samples_per_second", rate(result)}};
  if (!result.outputs.empty()) {
    for (const auto& [metric, value] : result.outputs.front().scores) json[metric] = number(value);
  }
  json["outputs"] = Json::array();
  for (const OutputScores& scores : result.outputs) json["outputs"].push_back(to_json(scores));
  return json;
}

void print_result(const EvaluateResult& result) {
  Table table;
  table.column("output").column("metric").column("value", Align::Right);
  for (const OutputScores& output : result.outputs) {
    for (const auto& [metric, value] : output.scores) {
      table.row({output.output, metric, fixed(value, 4)});
    }
  }
  print(table.text());
  print("\n" + grouped(result.samples) + " samples in " + fixed(result.seconds, 2) + " s, " +
        fixed(rate(result), 1) + " samples/s\n");
}

int run(const EvalFlags& flags) {
  const Bars bars{.at_least = parse_bars("--at-least", flags.at_least),
                  .at_most = parse_bars("--at-most", flags.at_most)};
  EvaluateOptions options;
  options.data = data_options(flags.data);
  if (!flags.samples.empty()) {
    if (!options.data.path.empty()) {
      throw Error(ErrorKind::Usage, "the data are given twice: behind the model, and by --data");
    }
    options.data.path = flags.samples;
  }
  options.metrics = split_list(flags.metrics);
  options.reference = flags.reference;
  options.output = flags.output;
  options.batch = flags.batch;
  options.dequantize = flags.dequantize;
  options.rounding = flags.rounding;
  ProgressBar bar;
  const EvaluateResult result = evaluate(flags.model, options, make_context(flags.common, bar));
  bar.clear();
  if (flags.common.json) {
    print_json(result_json(flags.model, result));
  } else {
    print_result(result);
  }
  suggest_after(
      "eval", flags.common,
      {{"model", flags.model}, {"reference", flags.reference}, {"data", options.data.path}});
  return check_bars(result.outputs, bars);
}

}  // namespace

Command setup_eval(CLI::App& root) {
  CLI::App* app = add_verb(root, "eval", "Score a model against labels or a reference model",
                           "quench eval model.onnx --data images.npy --labels labels.npy "
                           "--metric top1");
  auto flags = std::make_shared<EvalFlags>();
  add_model(*app, flags->model);
  app->add_option("samples", flags->samples, "An image, a folder or any file that --data takes")
      ->type_name("DATA");
  app->add_option("--metric", flags->metrics, "Metrics, as in top1,top5 (see quench list metrics)")
      ->allow_extra_args(false)
      ->type_name("LIST");
  app->add_option("--reference", flags->reference, "Score against this model's outputs")
      ->type_name("MODEL");
  app->add_option("--output", flags->output, "Score this output; default: the first, or all")
      ->type_name("NAME");
  app->add_option("--batch", flags->batch, "Samples a run; a fixed batch of the model wins")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  app->add_option("--at-least", flags->at_least, "Exit 1 if the metric is lower")
      ->allow_extra_args(false)
      ->type_name("METRIC=X");
  app->add_option("--at-most", flags->at_most, "Exit 1 if the metric is higher")
      ->allow_extra_args(false)
      ->type_name("METRIC=X");
  add_data_flags(*app, flags->data);
  add_dequant_flag(*app, flags->dequantize);
  add_rounding_flag(*app, flags->rounding);
  add_common_flags(*app, flags->common, Work::Shares);
  add_tensor_parallel_flag(*app);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
