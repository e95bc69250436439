// SPDX-License-Identifier: Apache-2.0
// quench demo: scores and times models side by side in one table.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/demo_rows.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/table.h"
#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

struct DemoFlags {
  DemoOptions options;
  DataFlags data;
  CommonFlags common;
  std::string report;
};

/// A column is a title and how it is read from a row; a new one is a line in `columns`.
struct Column {
  const char* title;
  Align align;
  std::function<std::string(const DemoRow&)> cell;
};

std::string score(const DemoRow& row, const std::string& metric) {
  const auto found = row.scores.find(metric);
  return found == row.scores.end() ? "-" : fixed(found->second, 2) + " %";
}

std::vector<Column> columns() {
  return {
      {"model", Align::Left,
       [](const DemoRow& row) { return std::filesystem::path(row.model).stem().string(); }},
      {"size", Align::Right, [](const DemoRow& row) { return human_bytes(row.bytes_on_disk); }},
      {"top-1", Align::Right, [](const DemoRow& row) { return score(row, "top1"); }},
      {"latency", Align::Right,
       [](const DemoRow& row) { return fixed(row.timing.median_ms, 3) + " ms"; }},
      {"images/s", Align::Right,
       [](const DemoRow& row) { return fixed(row.timing.samples_per_second, 0); }},
  };
}

void print_rows(const std::vector<DemoRow>& rows) {
  Table table;
  for (const Column& column : columns()) table.column(column.title, column.align);
  for (const DemoRow& row : rows) {
    std::vector<std::string> cells;
    for (const Column& column : columns()) cells.push_back(column.cell(row));
    table.row(cells);
  }
  print(table.text());
  if (rows.empty()) return;
  const BenchResult& timing = rows.front().timing;
  print("\n" + grouped(rows.front().samples) + " images; latency at batch " +
        grouped(timing.batch) + " on " + grouped(timing.threads) + " threads\n");
  print("quantised forms see the first " +
        grouped(std::min(DemoOptions().calibration_samples, rows.front().samples)) + " of them\n");
}

Json rows_json(const std::vector<DemoRow>& rows) {
  Json list = Json::array();
  for (const DemoRow& row : rows) {
    Json item = {
        {"model", row.model}, {"bytes_on_disk", row.bytes_on_disk}, {"samples", row.samples}};
    for (const auto& [metric, value] : row.scores) item[metric] = number(value);
    item["timing"] = to_json(row.timing);
    list.push_back(item);
  }
  return {{"models", list}};
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Ranks the layers of the first model and writes its HTML report.
void write_demo_report(const DemoOptions& options, const std::string& path, const Context& context,
                       Outputs& outputs) {
  AnalyzeOptions analysis;
  analysis.quantize.data = options.evaluate.data;
  std::int64_t& limit = analysis.quantize.data.limit;
  limit = limit > 0 ? std::min(limit, options.calibration_samples) : options.calibration_samples;
  analysis.save_dir = folder_of(path);
  const std::string& model = options.models.front();
  analysis.quantize.report_save_path = path;
  analysis.quantize.command = typed_command();
  analyze_sensitivity(model, analysis, {}, context, outputs);
}

int run(const DemoFlags& flags) {
  DemoOptions options = flags.options;
  options.evaluate.data = data_options(flags.data);
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  Outputs outputs;
  outputs.reads(flags.data.config, "the settings");
  for (const std::string& model : options.models) reads_model(outputs, model, "the model");
  if (!flags.report.empty()) {
    std::error_code ignored;  // what cannot be made cannot be written to, either
    std::filesystem::create_directories(folder_of(flags.report), ignored);
    writes_report(outputs, flags.report);
  }
  const std::vector<DemoRow> rows = demo_rows(options, context);
  if (!flags.report.empty()) write_demo_report(options, flags.report, context, outputs);
  outputs.commit();
  bar.clear();
  if (flags.common.json) {
    print_json(rows_json(rows));
  } else {
    print_rows(rows);
    if (!flags.report.empty()) print("report, for a browser: " + flags.report + "\n");
  }
  return kOk;
}

}  // namespace

Command setup_demo(CLI::App& root) {
  CLI::App* app = add_verb(root, "demo", "Score and time models side by side",
                           "quench demo --model model.onnx --data images.npy --labels labels.npy");
  auto flags = std::make_shared<DemoFlags>();
  app->add_option("--model", flags->options.models, "Model file; repeatable, one row each")
      ->required()
      ->allow_extra_args(false)
      ->type_name("MODEL");
  app->add_option("--runs", flags->options.bench.runs, "Timed runs")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app->add_option("--int8", flags->options.int8_folder,
                  "Quantise each model in several ways into this folder and show those too")
      ->type_name("FOLDER");
  app->add_option("--report", flags->report,
                  "Rank the layers of the first model and write its HTML report")
      ->type_name("HTML");
  add_data_flags(*app, flags->data);
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
