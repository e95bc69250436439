// SPDX-License-Identifier: Apache-2.0
// quench bench: how fast a model runs and how much memory it takes.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/json.h"
#include "cli/onnxruntime.h"
#include "cli/parse.h"
#include "cli/table.h"
#include "quench/formats.h"

namespace quench::cli {
namespace {

struct BenchFlags {
  std::vector<std::string> models;
  std::vector<std::string> shapes;
  std::string runtime;
  std::string python = "python3";
  std::string trace;
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
  // How many times as fast as the first model, and how much of its memory.
  const bool several = results.size() > 1;
  if (several) table.column("speed", Align::Right).column("memory", Align::Right);
  const auto ratio = [](double a, double b) { return b > 0 ? fixed(a / b, 2) + "x" : "-"; };
  for (const BenchResult& result : results) {
    std::vector<std::string> cells = {result.model,
                                      grouped(result.batch),
                                      grouped(result.threads),
                                      grouped(result.runs),
                                      fixed(result.median_ms, 3),
                                      fixed(result.p95_ms, 3),
                                      fixed(result.samples_per_second, 1),
                                      fixed(result.load_ms, 1),
                                      fixed(result.peak_rss_mb, 1)};
    if (several) {
      const BenchResult& first = results.front();
      cells.push_back(ratio(result.samples_per_second, first.samples_per_second));
      cells.push_back(ratio(result.peak_rss_mb, first.peak_rss_mb));
    }
    table.row(std::move(cells));
  }
  print(table.text());
}

/// Mean times of the operators, the slowest first.
void print_profile(const BenchResult& result) {
  std::map<std::string, std::pair<std::int64_t, double>> by_operator;
  double total = 0;
  for (const BenchStep& step : result.steps) {
    auto& [count, ms] = by_operator[step.op_type];
    ++count;
    ms += step.mean_ms;
    total += step.mean_ms;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [name, sums] : by_operator) order.emplace_back(sums.second, name);
  std::ranges::sort(order, std::greater<>());
  Table table;
  table.column("operator");
  for (const char* title : {"steps", "ms a run", "share"}) table.column(title, Align::Right);
  for (const auto& [ms, name] : order) {
    table.row({name, grouped(by_operator[name].first), fixed(ms, 3),
               fixed(total > 0 ? 100 * ms / total : 0, 1) + " %"});
  }
  print("\n" + result.model + "\n" + table.text());
}

/// Complete events of the trace format that Chrome and Perfetto read: one row a model.
void write_trace(const std::string& path, const std::vector<BenchResult>& results,
                 Outputs& outputs) {
  Json events = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 1},
                      {"tid", i},
                      {"args", {{"name", results[i].model}}}});
    for (const BenchStep& step : results[i].steps) {
      events.push_back({{"ph", "X"},
                        {"name", step.node},
                        {"cat", step.op_type},
                        {"pid", 1},
                        {"tid", i},
                        {"ts", 1000 * step.start_ms},
                        {"dur", 1000 * step.ms}});
    }
  }
  write_json({{"traceEvents", events}}, path, outputs);
}

Json results_json(const std::vector<BenchResult>& results) {
  if (results.size() == 1) return to_json(results.front());
  Json models = Json::array();
  for (const BenchResult& result : results) models.push_back(to_json(result));
  return {{"models", models}};
}

int run(const BenchFlags& flags) {
  BenchOptions options = flags.options;
  options.profile = options.profile || !flags.trace.empty();
  options.shapes = parse_shapes("--shape", flags.shapes);
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  Outputs outputs;
  if (!flags.trace.empty()) {
    for (const std::string& model : flags.models) reads_model(outputs, model, "the model");
    outputs.writes(flags.trace, "the trace");
  }
  std::vector<BenchResult> results;
  for (const std::string& model : flags.models) {
    results.push_back(bench(model, options, context));
    if (flags.runtime.empty()) continue;
    results.push_back(bench_onnxruntime(model, options, flags.python, context.num_threads()));
  }
  bar.clear();
  if (!flags.trace.empty()) write_trace(flags.trace, results, outputs);
  outputs.commit();
  if (flags.common.json) {
    print_json(results_json(results));
    return kOk;
  }
  print_results(results);
  for (const BenchResult& result : results) {
    if (flags.options.profile && !result.steps.empty()) print_profile(result);
  }
  if (!options.profile) suggest_after("bench", flags.common, {{"model", flags.models.front()}});
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
  app->add_flag("--profile", options.profile, "Show what each kind of operator takes");
  app->add_option("--trace", flags->trace, "Write the last run of each model for chrome://tracing")
      ->type_name("FILE");
  app->add_option("--runtime", flags->runtime, "Time each model in this runtime too")
      ->check(CLI::IsMember({"onnxruntime", "ort"}))
      ->type_name("NAME");
  app->add_option("--python", flags->python, "Interpreter that has the runtime installed")
      ->capture_default_str()
      ->type_name("PROGRAM");
  add_dequant_flag(*app, options.dequantize);
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
