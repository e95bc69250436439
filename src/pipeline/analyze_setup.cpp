// SPDX-License-Identifier: Apache-2.0
// Loads a model, calibrates it once, and opens what it is judged by.
#include "pipeline/analyze_setup.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "calibrate/collect.h"
#include "pipeline/fingerprint.h"
#include "pipeline/job_files.h"
#include "pipeline/job_steps.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/random_inputs.h"
#include "pipeline/small_layers.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

/// The samples that `quantize` calibrates with: the rest it keeps to judge by.
std::int64_t calibrating_part(std::int64_t samples, std::int64_t held_out, std::int64_t batch) {
  const std::int64_t judge = std::min(held_out, samples / 5) / batch * batch;
  return (samples - judge) / batch * batch;
}

void calibrate_for(Analysis& analysis, const std::string& origin, const AnalyzeOptions& options,
                   const Context& context) {
  const QuantizeOptions& quantize = options.quantize;
  if (!quantize.statistics.empty()) {
    analysis.simulator->set_statistics(read_statistics(quantize.statistics, origin));
    return;
  }
  if (quantize.data.path.empty()) {
    fail(ErrorKind::Usage, "analysis needs samples to calibrate with: give --data PATH");
  }
  const Model& model = analysis.simulator->model();
  const std::vector<Value> inputs = required_inputs(model.graph);
  analysis.calibration = open_data(quantize.data, inputs, context);
  const std::int64_t batch = analysis.calibration->batchable() ? effective_batch(inputs, 1) : 1;
  analysis.calibration_samples = calibrating_part(analysis.calibration->size(), quantize.held_out,
                                                  std::max<std::int64_t>(1, batch));
  const auto began = Clock::now();
  analysis.simulator->set_statistics(calibrate::collect(
      model, analysis.simulator->wanted_statistics(), *analysis.calibration,
      {.batch = quantize.batch, .count = analysis.calibration_samples}, context));
  analysis.calibration_seconds = std::chrono::duration<double>(Clock::now() - began).count();
}

void open_evaluation(Analysis& analysis, const AnalyzeOptions& options, const Context& context) {
  if (options.eval_function && !options.metric_command.empty()) {
    fail(ErrorKind::Usage, "give an eval_function or a metric command, not both");
  }
  if (options.eval_function) {
    analysis.eval = options.eval_function;
    return;
  }
  if (!options.metric_command.empty()) {
    analysis.eval = [command = options.metric_command, folder = options.save_dir](const Model& m) {
      return run_metric_command(command, m, folder);
    };
    return;
  }
  const DataOptions& eval = options.eval.path.empty() ? options.quantize.data : options.eval;
  if (eval.path.empty()) {
    fail(ErrorKind::Usage, "the metric '{}' needs evaluation data: give --eval-data or --data",
         options.metric.empty() ? "sqnr" : options.metric);
  }
  const Graph& graph = analysis.simulator->model().graph;
  auto source = open_data(eval, required_inputs(graph), context);
  std::string metric = options.metric;
  if (metric.empty()) metric = source->has_labels() ? "top1" : "sqnr";
  analysis.scorer.emplace(metric, float_output_names(graph));
  if (analysis.scorer->needs_labels() && !source->has_labels()) {
    fail(ErrorKind::BadData, "the metric '{}' needs labels, and {} has none: give --eval-labels",
         metric, eval.path);
  }
  analysis.data.emplace(std::move(source), required_inputs(graph), options.quantize.batch, context);
}

}  // namespace

std::vector<std::string> float_output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.outputs) {
    const ValueType& type = graph[id].type;
    if (type.dtype == DType::Undefined || info(type.dtype).is_float)
      names.push_back(graph[id].name);
  }
  return names;
}

Analysis set_up_analysis(const std::string& model_path, const AnalyzeOptions& options,
                         AnalysisNeeds needs, const Context& context) {
  Analysis analysis;
  analysis.model_path = model_path;
  Model model = load(model_path);
  const std::string origin = options.quantize.statistics.empty() ? "" : fingerprint(model);
  set_input_shapes(model, options.quantize.input_shapes);
  infer_and_warn(model, context);
  model = prepare_for_quantization(std::move(model));
  QuantConfig config = without_small_layers(model.graph, options.quantize);
  make_final_plan(model, config);  // the version of operators that the written file has
  analysis.simulator = std::make_unique<analyze::Simulator>(std::move(model), std::move(config),
                                                            context.num_threads());
  if (!options.save_dir.empty()) make_folder(options.save_dir);
  // A wrong metric or missing data is reported before the long pass.
  if (needs == AnalysisNeeds::Evaluation) open_evaluation(analysis, options, context);
  calibrate_for(analysis, origin, options, context);
  return analysis;
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    fail(ErrorKind::Io, "the folder '{}' cannot be made: {}", path,
         error ? error.message() : "a file of that name is there");
  }
  const AtomicFile probe((std::filesystem::path(path) / ".probe").string());
}

void write_text(const std::string& path, std::string_view text) {
  with_outputs([&](Outputs& outputs) { write_text(path, text, outputs); });
}

std::string on_one_line(std::string_view name) {
  std::string line(name);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return line;
}

}  // namespace quench
