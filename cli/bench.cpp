// SPDX-License-Identifier: Apache-2.0
// quench bench: how fast a model runs and how much memory it takes.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/parse.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

struct BenchFlags {
  std::vector<std::string> models;
  std::vector<std::string> shapes;
  BenchOptions options;
  CommonFlags common;
};

void print_results(const std::vector<BenchResult>& results) {
  Table table;
  table.column("model");
  for (const char* title :
       {"batch", "threads", "runs", "median ms", "p95 ms", "images/s", "load ms", "peak MB"}) {
    table.column(title, Align::Right);
  }
  for (const BenchResult& result : results) {
    table.row({result.model, grouped(result.batch), grouped(result.threads), grouped(result.runs),
               fixed(result.median_ms, 3), fixed(result.p95_ms, 3),
               fixed(result.samples_per_second, 1), fixed(result.load_ms, 1),
               fixed(result.peak_rss_mb, 1)});
  }
  print(table.text());
}

Json results_json(const std::vector<BenchResult>& results) {
  if (results.size() == 1) return to_json(results.front());
  Json models = Json::array();
  for (const BenchResult& result : results) models.push_back(to_json(result));
  return {{"models", models}};
}

int run(const BenchFlags& flags) {
  BenchOptions options = flags.options;
  options.shapes = parse_shapes("--shape", flags.shapes);
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  std::vector<BenchResult> results;
  for (const std::string& model : flags.models) results.push_back(bench(model, options, context));
  bar.clear();
  if (flags.common.json) {
    print_json(results_json(results));
  } else {
    print_results(results);
  }
  return kOk;
}

}  // namespace

Command setup_bench(CLI::App& root) {
  CLI::App* app = add_verb(root, "bench", "Time models on random inputs",
                           "quench bench model.onnx --batch 4 --threads 2 --runs 5");
  auto flags = std::make_shared<BenchFlags>();
  BenchOptions& options = flags->options;
  app->add_option("models", flags->models, "Model files")->required()->type_name("MODEL");
  app->add_option("--batch", options.batch, "Samples a run; a fixed batch of the model wins")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  app->add_option("--runs", options.runs, "Timed runs")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str()
      ->type_name("N");
  app->add_option("--warmup", options.warmup, "Runs before the timed ones")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->type_name("N");
  app->add_option("--max-seconds", options.max_seconds, "Stop early after this, and 3 runs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("S");
  app->add_option("--shape", flags->shapes, "Shape of an input with open dimensions")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
