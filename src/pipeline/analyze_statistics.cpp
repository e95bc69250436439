// SPDX-License-Identifier: Apache-2.0
// quench analyze statistics: every weight and activation before and after quantisation.
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "analyze/twin.h"
#include "base/format.h"
#include "calibrate/collect.h"
#include "pipeline/analyze_setup.h"
#include "report/plots.h"
#include "report/statistics_table.h"

namespace quench {
namespace {

using analyze::Layer;
using report::TensorRow;

/// What a layer reads.
std::string input_of(const Graph& graph, const Layer& layer) {
  return graph[graph.nodes[static_cast<std::size_t>(layer.node)].inputs[0]].name;
}

void add_weights(analyze::Simulator& simulator, std::vector<TensorRow>& rows) {
  const Graph& graph = simulator.model().graph;
  const QuantSolution solution = simulator.solve(simulator.plan());
  for (const Layer& layer : simulator.layers()) {
    const Tensor& real = *graph.constant(graph.find(layer.weight));
    const Tensor quantized = fake_quantize(real, solution.weights.at({layer.node, 1}));
    const std::vector<float> before = to_float(real);
    const std::vector<float> after = to_float(quantized);
    std::vector<float> difference(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) difference[i] = before[i] - after[i];
    TensorRow row{.name = layer.weight, .is_weight = true};
    row.real.add_sample(before);
    row.quantized.add_sample(after);
    row.difference.add_sample(difference);
    rows.push_back(std::move(row));
  }
}

/// One pass in which the float and the quantised model see the same samples.
void add_activations(Analysis& analysis, const AnalyzeOptions& options, const Context& context,
                     std::vector<TensorRow>& rows) {
  analyze::Simulator& simulator = *analysis.simulator;
  const Graph& graph = simulator.model().graph;
  std::set<std::string> inputs;
  for (const Layer& layer : simulator.layers()) inputs.insert(input_of(graph, layer));
  const analyze::Twin twin = analyze::make_twin(simulator.model(), simulator.quantized({}),
                                                {inputs.begin(), inputs.end()});
  std::vector<std::string> names;
  for (const analyze::TwinValue& value : twin.values) {
    names.insert(names.end(), {value.quantized, value.difference});
  }
  const StatisticMap seen = calibrate::collect(
      twin.model, names, *analysis.calibration,
      {.batch = options.quantize.batch, .count = analysis.calibration_samples}, context);
  for (const Layer& layer : simulator.layers()) {
    const std::string input = input_of(graph, layer);
    for (const analyze::TwinValue& value : twin.values) {
      if (value.value != input) continue;
      rows.push_back({.name = input,
                      .weight = layer.weight,
                      .real = simulator.statistics().at(input),
                      .quantized = seen.at(value.quantized),
                      .difference = seen.at(value.difference)});
    }
  }
}

/// Each tensor once: an activation may have a row for each layer that reads it.
std::vector<report::Plotted> plotted(const std::vector<TensorRow>& rows, bool weights,
                                     bool quantized) {
  std::map<std::string, const Statistic*> tensors;
  for (const TensorRow& row : rows) {
    if (row.is_weight == weights) tensors[row.name] = quantized ? &row.quantized : &row.real;
  }
  std::vector<report::Plotted> result;
  for (const auto& [name, statistic] : tensors) {
    result.push_back({.name = name, .statistic = statistic});
  }
  return result;
}

void draw_all(const std::vector<TensorRow>& rows, const std::filesystem::path& folder,
              const Context& context) {
  for (const bool quantized : {false, true}) {
    for (const bool weights : {false, true}) {
      const auto tensors = plotted(rows, weights, quantized);
      const std::string stem =
          format("{}_{}", quantized ? "quantized" : "fp", weights ? "weight" : "activation");
      const std::string title =
          format("{} {}", quantized ? "quantised" : "float", weights ? "weights" : "activations");
      report::write_box_plot(tensors, title, (folder / (stem + "_boxplot.pdf")).string(), context);
      report::write_hist_plot(tensors, title, (folder / (stem + "_histplot.pdf")).string(),
                              context);
    }
  }
}

}  // namespace

StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context) {
  if (options.quantize.data.path.empty()) {
    fail(ErrorKind::Usage, "statistics are of samples: give --data PATH");
  }
  const auto began = std::chrono::steady_clock::now();
  AnalyzeOptions own = options;
  own.quantize.statistics.clear();
  Analysis analysis = set_up_analysis(model_path, own, AnalysisNeeds::Statistics, context);
  std::vector<TensorRow> rows;
  add_activations(analysis, own, context, rows);
  add_weights(*analysis.simulator, rows);
  const std::filesystem::path folder(options.save_dir);
  write_text((folder / "statistic.csv").string(), report::statistics_table(rows));
  draw_all(rows, folder, context);
  StatisticsResult result;
  result.layers = analysis.simulator->layers().size();
  result.samples = analysis.calibration_samples;
  result.calibration_seconds = analysis.calibration_seconds;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
