// SPDX-License-Identifier: Apache-2.0
// quench compare: how far two models are apart, by output and by layer.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/bars.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/parse.h"
#include "cli/table.h"
#include "quench/metrics.h"

namespace quench::cli {
namespace {

struct CompareFlags {
  std::string a;
  std::string b;
  DataFlags data;
  std::vector<std::string> metrics;
  std::vector<std::string> shapes;
  std::string output;
  std::int64_t batch = 8;
  std::int64_t samples = 16;
  std::string sort;
  std::optional<double> min_cosine;
  std::optional<double> min_sqnr;
  CommonFlags common;
};

bool higher_is_better(const std::string& metric) {
  for (const MetricInfo& info : all_metrics()) {
    if (info.name == metric) return info.higher_is_better;
  }
  return true;
}

/// How bad a score is; what is not a number is worst.
double badness(const OutputScores& layer, const std::string& metric, bool higher_better) {
  const auto found = layer.scores.find(metric);
  if (found == layer.scores.end()) {
    throw Error(ErrorKind::Usage, "--sort takes a metric that is computed; got '" + metric + "'");
  }
  if (std::isnan(found->second)) return INFINITY;
  return higher_better ? -found->second : found->second;
}

void sort_worst_first(std::vector<OutputScores>& layers, const std::string& metric) {
  const bool higher_better = higher_is_better(metric);
  std::stable_sort(layers.begin(), layers.end(), [&](const auto& left, const auto& right) {
    return badness(left, metric, higher_better) > badness(right, metric, higher_better);
  });
}

void print_scores(const std::string& title, const std::vector<OutputScores>& rows) {
  if (rows.empty()) return;
  Table table;
  table.column(title);
  for (const auto& [metric, value] : rows.front().scores) table.column(metric, Align::Right);
  for (const OutputScores& row : rows) {
    std::vector<std::string> cells{row.output};
    for (const auto& [metric, value] : row.scores) cells.push_back(fixed(value, 6));
    table.row(cells);
  }
  print(table.text() + "\n");
}

void show(const CompareFlags& flags, const CompareResult& result) {
  if (!flags.common.json) {
    print_scores("output", result.outputs);
    print_scores("layer", result.layers);
    if (result.padded + result.equalized > 0) {
      print(grouped(result.padded) + " values were padded, " + grouped(result.equalized) +
            " equalised: compared as in the float model\n");
    }
    print(grouped(result.samples) + " samples\n");
    return;
  }
  Json json = {{"a", flags.a},
               {"b", flags.b},
               {"samples", result.samples},
               {"padded", result.padded},
               {"equalized", result.equalized}};
  json["outputs"] = Json::array();
  json["layers"] = Json::array();
  for (const OutputScores& row : result.outputs) json["outputs"].push_back(to_json(row));
  for (const OutputScores& row : result.layers) json["layers"].push_back(to_json(row));
  print_json(json);
}

int run(const CompareFlags& flags) {
  EvaluateOptions options;
  options.data = data_options(flags.data);
  options.random = {flags.samples, parse_shapes("--shape", flags.shapes)};
  options.metrics = split_list(flags.metrics);
  options.output = flags.output;
  options.batch = flags.batch;
  Bars bars;
  if (flags.min_cosine) bars.at_least["cosine"] = *flags.min_cosine;
  if (flags.min_sqnr) bars.at_least["sqnr"] = *flags.min_sqnr;
  ProgressBar bar;
  CompareResult result = compare(flags.a, flags.b, options, make_context(flags.common, bar));
  bar.clear();
  if (!flags.sort.empty()) sort_worst_first(result.layers, flags.sort);
  show(flags, result);
  suggest_after("compare", flags.common,
                {{"model", flags.a}, {"reference", flags.b}, {"data", options.data.path}});
  return check_bars(result.outputs, bars);
}

void add_flags(CLI::App& app, CompareFlags& flags) {
  app.add_option("a", flags.a, "Model under test")->required()->type_name("A");
  app.add_option("b", flags.b, "Model it is measured against")->required()->type_name("B");
  app.add_option("--metric", flags.metrics, "Metrics; default cosine,sqnr,max_abs")
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--output", flags.output, "Compare this output only")->type_name("NAME");
  app.add_option("--sort", flags.sort, "Order the layers by this metric, worst first")
      ->expected(0, 1)
      ->default_str("sqnr")
      ->type_name("METRIC");
  app.add_option("--min-cosine", flags.min_cosine, "Exit 1 if an output's cosine is lower")
      ->type_name("X");
  app.add_option("--min-sqnr", flags.min_sqnr, "Exit 1 if an output's SQNR in dB is lower")
      ->type_name("X");
  app.add_option("--batch", flags.batch, "Samples a run; a fixed batch of the model wins")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  app.add_option("--samples", flags.samples, "Random samples, without --data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000000}))
      ->type_name("N");
  app.add_option("--shape", flags.shapes, "Shape of a random input with open dimensions")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
}

}  // namespace

Command setup_compare(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "compare", "Compare two models by output and, where names match, by layer",
               "quench compare model.onnx reference.onnx --data images.npy --sort cosine");
  auto flags = std::make_shared<CompareFlags>();
  add_flags(*app, *flags);
  add_data_flags(*app, flags->data);
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
