// SPDX-License-Identifier: Apache-2.0
// quench analyze statistics: every weight and activation before and after quantisation.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "analyze/twin.h"
#include "base/file.h"
#include "base/format.h"
#include "calibrate/collect.h"
#include "job/analysis.h"
#include "job/job_files.h"
#include "observe/scan.h"
#include "report/job_page.h"
#include "report/plots.h"
#include "report/statistics_table.h"

namespace quench {
namespace {

using analyze::Layer;
using report::TensorRow;

/// What a layer reads.
std::string input_of(const Graph& graph, const Layer& layer) {
  return graph[node_called(graph, layer.node).inputs[0]].name;
}

/// A weight that is not float any more: what it stands for, and its integers.
struct Rounded {
  Tensor values;
  Tensor integers;
};

/// Nothing for a product whose weight the file holds in another layout.
std::optional<Rounded> rounded_weight(job::Analysis& analysis, const Layer& layer,
                                      const Tensor& real) {
  if (!layer.stored) {
    const QuantParams& params = analysis.job.solution.weights.at({layer.node, 1});
    return Rounded{.values = fake_quantize(real, params),
                   .integers = quantize_tensor(real, params)};
  }
  const int threads = analysis.job.context.num_threads();
  const std::optional<quant::QuantWeight> stored = analysis.simulator->stored_weight(layer);
  if (!stored) return std::nullopt;
  return Rounded{.values = quant::dequantize_weight(*stored, threads),
                 .integers = stored->integers};
}

void add_weights(job::Analysis& analysis, std::vector<TensorRow>& rows) {
  const Graph& graph = analysis.simulator->model().graph;
  for (const Layer& layer : analysis.simulator->layers()) {
    const Tensor& real = *graph.constant(graph.find(layer.weight));
    const std::optional<Rounded> rounded = rounded_weight(analysis, layer, real);
    if (!rounded) continue;
    const std::vector<float> before = to_float(real);
    const std::vector<float> after = to_float(rounded->values);
    std::vector<float> difference(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) difference[i] = before[i] - after[i];
    TensorRow row{.name = layer.weight, .is_weight = true};
    row.real.add_sample(before);
    row.quantized.add_sample(after);
    row.difference.add_sample(difference);
    row.integers.add_sample(to_float(rounded->integers));
    rows.push_back(std::move(row));
  }
}

/// Every dequantised number is (integer - zero point) * scale, so what is known of the numbers is
/// known of the integers.
Statistic integers_of(const Statistic& numbers, const QuantParams& params) {
  Statistic integers;
  if (numbers.count == 0) return integers;
  const auto scale = static_cast<double>(params.scale.at(0));
  const auto zero = static_cast<double>(params.zero_point.at(0));
  const auto count = static_cast<double>(numbers.count);
  const double mean = numbers.mean() / scale + zero;
  integers.samples = numbers.samples;
  integers.count = numbers.count;
  integers.min = std::round(numbers.min / scale) + zero;
  integers.max = std::round(numbers.max / scale) + zero;
  integers.sum.add(mean * count);
  integers.sum_squares.add((numbers.variance() / (scale * scale) + mean * mean) * count);
  return integers;
}

/// Extremes, mean and spread of differences: nobody asks for more of them.
class Differences {
 public:
  Differences(std::size_t values, int workers)
      : parts_(static_cast<std::size_t>(workers), std::vector<Statistic>(values)) {}

  void add(const TapSample& sample) {
    Statistic& part = parts_[static_cast<std::size_t>(sample.worker)][sample.tap];
    const auto count = static_cast<std::int64_t>(sample.values.size());
    const observe::Summary seen = observe::summarize(sample.values.data(), count);
    ++part.samples;
    if (count == 0 || !std::isfinite(seen.sum_squares)) return;
    widen(part, static_cast<double>(seen.min), static_cast<double>(seen.max));
    part.count += count;
    part.sum.add(seen.sum);
    part.sum_squares.add(seen.sum_squares);
  }

  Statistic of(std::size_t value) const {
    Statistic whole;
    for (const std::vector<Statistic>& each : parts_) {
      const Statistic& part = each[value];
      whole.samples += part.samples;
      if (part.count == 0) continue;
      widen(whole, part.min, part.max);
      whole.count += part.count;
      whole.sum.add(part.sum);
      whole.sum_squares.add(part.sum_squares);
    }
    return whole;
  }

 private:
  static void widen(Statistic& statistic, double min, double max) {
    statistic.min = statistic.count == 0 ? min : std::min(statistic.min, min);
    statistic.max = statistic.count == 0 ? max : std::max(statistic.max, max);
  }
  std::vector<std::vector<Statistic>> parts_;  ///< by worker, then by value
};

/// There is no validation set, except for a job that calibrates nothing: then it is all.
std::int64_t all_samples(const job::Job& job) {
  return job.samples.calibration().count + job.samples.validation().count;
}

/// One pass in which the float and the quantised model see the same samples.
void add_activations(job::Analysis& analysis, std::vector<TensorRow>& rows) {
  const job::Job& job = analysis.job;
  const QuantSolution& solution = job.solution;
  analyze::Simulator& simulator = *analysis.simulator;
  const Graph& graph = simulator.model().graph;
  std::set<std::string> inputs;
  for (const Layer& layer : simulator.layers()) inputs.insert(input_of(graph, layer));
  const analyze::Twin twin = analyze::make_twin(simulator.model(), simulator.quantized({}),
                                                {inputs.begin(), inputs.end()});
  Differences differences(twin.values.size(), job.context.num_threads());
  calibrate::CollectOptions how{.batch = job.options.batch, .count = all_samples(job)};
  how.integer = true;
  how.on_other = [&](const TapSample& sample) { differences.add(sample); };
  std::vector<std::string> names;
  std::map<std::string, std::size_t> places;
  for (const analyze::TwinValue& value : twin.values) {
    places[value.value] = names.size();
    names.push_back(value.quantized);
    how.others.push_back(value.difference);
  }
  // A job that calibrates has seen the float values already.
  std::vector<std::string> observed = names;
  for (const analyze::TwinValue& value : twin.values) {
    if (!simulator.statistics().contains(value.value)) observed.push_back(value.in_float);
  }
  const StatisticMap seen =
      calibrate::collect(twin.model, observed, job.samples.source(), how, job.context);
  for (const Layer& layer : simulator.layers()) {
    const std::string input = input_of(graph, layer);
    const std::size_t place = places.at(input);
    const Statistic& quantized = seen.at(names[place]);
    const auto params = solution.values.find(input);
    const auto known = simulator.statistics().find(input);
    rows.push_back(
        {.name = input,
         .weight = layer.weight,
         .real = known == simulator.statistics().end() ? seen.at(twin.values[place].in_float)
                                                       : known->second,
         .quantized = quantized,
         .difference = differences.of(place),
         .integers = params == solution.values.end() ? Statistic()
                                                     : integers_of(quantized, params->second)});
  }
}

/// Each tensor once, in the order of the network: an activation may have a row for each layer that
/// reads it.
std::vector<report::Plotted> plotted(const std::vector<TensorRow>& rows, bool weights,
                                     bool quantized) {
  std::set<std::string> seen;
  std::vector<report::Plotted> result;
  for (const TensorRow& row : rows) {
    if (row.is_weight != weights || !seen.insert(row.name).second) continue;
    result.push_back({.name = row.name, .statistic = quantized ? &row.quantized : &row.real});
  }
  return result;
}

void draw_all(const std::vector<TensorRow>& rows, const std::filesystem::path& folder,
              const Context& context, Outputs& outputs) {
  for (const bool quantized : {false, true}) {
    for (const bool weights : {false, true}) {
      const auto tensors = plotted(rows, weights, quantized);
      const std::string stem =
          format("{}_{}", quantized ? "quantized" : "fp", weights ? "weight" : "activation");
      const std::string title =
          format("{} {}", quantized ? "quantised" : "float", weights ? "weights" : "activations");
      report::write_box_plot(tensors, title, (folder / (stem + "_boxplot.pdf")).string(), context,
                             outputs);
      report::write_hist_plot(tensors, title, (folder / (stem + "_histplot.pdf")).string(), context,
                              outputs);
    }
  }
}

}  // namespace

StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context) {
  return with_outputs(
      [&](Outputs& outputs) { return analyze_statistics(model_path, options, context, outputs); });
}

StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context, Outputs& outputs) {
  if (options.quantize.data.path.empty()) {
    fail(ErrorKind::Usage, "statistics are of samples: give --data PATH");
  }
  if (options.quantize.type == QuantType::Dynamic) {
    fail(ErrorKind::Usage,
         "analyze statistics is for --type full and --type weight: --type dynamic finds scales "
         "while "
         "the model runs; analyze sensitivity ranks its layers");
  }
  if (context.ranks) {
    fail(ErrorKind::Usage,
         "analyze statistics draws what one process saw; leave out --distributed");
  }
  const auto began = std::chrono::steady_clock::now();
  AnalyzeOptions own = options;
  own.quantize.statistics.clear();
  own.quantize.held_out = 0;  // every sample is drawn: there is no validation set
  const std::filesystem::path folder(options.save_dir);
  if (!options.save_dir.empty()) make_folder(options.save_dir);
  reads_analysis(outputs, model_path, own);
  outputs.writes((folder / "statistic.csv").string(), "the table");
  const std::string& page = options.quantize.report_save_path;
  if (!page.empty()) writes_report(outputs, page);
  const auto started =
      job::start_analysis(model_path, own, job::AnalysisNeeds::Statistics, context);
  job::Analysis& analysis = *started;
  std::vector<TensorRow> rows;
  add_activations(analysis, rows);
  add_weights(analysis, rows);
  write_text((folder / "statistic.csv").string(), report::statistics_table(rows), outputs);
  draw_all(rows, folder, context, outputs);
  if (!page.empty()) {
    job::lower(analysis.job);
    report::write_page(report::page_of(analysis.job, analysis.job.quantized, model_path), page,
                       outputs);
  }
  StatisticsResult result;
  result.layers = analysis.simulator->layers().size();
  result.samples = all_samples(analysis.job);
  result.calibration_seconds = analysis.calibration_seconds;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

}  // namespace quench
