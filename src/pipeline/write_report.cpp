// SPDX-License-Identifier: Apache-2.0
// Gathers what the HTML report shows.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "analyze/layer_error.h"
#include "base/format.h"
#include "pipeline/analyze_setup.h"
#include "pipeline/job_files.h"
#include "plan/facts.h"
#include "quench/report.h"
#include "report/html_report.h"
#include "report/statistics_table.h"

namespace quench {
namespace {

constexpr std::size_t kBars = 60;
/// Samples that layers are compared on.
constexpr std::int64_t kCompared = 16;

report::ReportHistogram histogram_of(const std::string& name, const Statistic& statistic,
                                     const QuantParams* grid) {
  report::ReportHistogram hist{.name = name,
                               .min = statistic.min,
                               .max = statistic.max,
                               .share = report::shares(statistic, kBars)};
  if (grid == nullptr || grid->scale.empty()) return hist;
  Range range;
  for (std::size_t i = 0; i < grid->scale.size(); ++i) {
    const auto end = [&](std::int64_t step) {
      return static_cast<double>(step - grid->zero_point[i]) * static_cast<double>(grid->scale[i]);
    };
    range.min = std::min(range.min, end(grid->spec.q_min()));
    range.max = std::max(range.max, end(grid->spec.q_max()));
  }
  hist.range = range;
  return hist;
}

/// The model, its grids and its errors, put together for the page.
class Gatherer {
 public:
  Gatherer(Analysis& analysis, const AnalyzeOptions& options, const Context& context)
      : simulator_(*analysis.simulator),
        graph_(simulator_.model().graph),
        solution_(simulator_.solve(simulator_.plan())) {
    for (const LayerError& error : errors(analysis, options, context)) errors_[error.layer] = error;
  }

  report::ReportData gather() {
    report::ReportData data;
    add_layers(data);
    add_nodes(data);
    return data;
  }

  const Model& quantized() const { return quantized_; }

 private:
  std::vector<LayerError> errors(Analysis& analysis, const AnalyzeOptions& options,
                                 const Context& context) {
    quantized_ = simulator_.quantized({});
    if (!analysis.calibration) return {};
    const std::vector<Value> inputs = inputs_of();
    analyze::EvalData data(std::move(analysis.calibration), inputs, options.quantize.batch,
                           context);
    std::vector<TensorMap> batches;
    for (std::int64_t i = 0; i < data.batches(); ++i) {
      batches.push_back(data.batch(i)->inputs);
      if (data.samples_until(i) >= kCompared) break;
    }
    return analyze::layer_errors(simulator_.model(), quantized_,
                                 analyze::compared_values(simulator_.model(), simulator_.plan()),
                                 batches, context);
  }

  std::vector<Value> inputs_of() const {
    std::vector<Value> inputs;
    for (const ValueId id : graph_.inputs) {
      if (!graph_[id].constant) inputs.push_back(graph_[id]);
    }
    return inputs;
  }

  void add_layers(report::ReportData& data) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!plan::is_layer(node)) continue;
      const NodePlan& plan = simulator_.plan().nodes[i];
      report::ReportLayer layer{.name = plan::key_of(graph_, node),
                                .op_type = node.op_type,
                                .kind = plan.kind == NodePlan::Kind::Integer ? "integer" : "float",
                                .reason = plan.reason};
      if (const auto found = errors_.find(layer.name); found != errors_.end()) {
        layer.error = found->second;
      }
      add_histograms(static_cast<NodeId>(i), node, layer);
      data.layers.push_back(std::move(layer));
    }
  }

  void add_histograms(NodeId id, const Node& node, report::ReportLayer& layer) {
    if (const Tensor* weight = graph_.constant(node.input(1))) {
      Statistic statistic;
      statistic.add_sample(to_float(*weight));
      const auto grid = solution_.weights.find({id, 1});
      layer.weight = histogram_of(graph_[node.inputs[1]].name, statistic,
                                  grid == solution_.weights.end() ? nullptr : &grid->second);
    }
    const std::string& input = graph_[node.inputs.at(0)].name;
    const auto seen = simulator_.statistics().find(input);
    if (seen == simulator_.statistics().end()) return;
    const auto grid = solution_.values.find(input);
    layer.activation =
        histogram_of(input, seen->second, grid == solution_.values.end() ? nullptr : &grid->second);
  }

  void add_nodes(report::ReportData& data) {
    const Uses uses(graph_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const NodePlan::Kind kind = simulator_.plan().nodes[i].kind;
      report::ReportNode made{.name = plan::key_of(graph_, node),
                              .op_type = node.op_type,
                              .kind = kind == NodePlan::Kind::Integer       ? "integer"
                                      : kind == NodePlan::Kind::PassThrough ? "moves"
                                                                            : "float"};
      for (const ValueId id : node.inputs) {
        const NodeId maker = id == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(id)];
        if (maker < 0) continue;
        const auto from = static_cast<std::size_t>(maker);
        made.inputs.push_back(from);
        made.depth = std::max(made.depth, data.nodes[from].depth + 1);
      }
      if (const auto found = errors_.find(made.name); found != errors_.end()) {
        made.sqnr = found->second.sqnr;
      } else if (!made.inputs.empty() && made.kind == "integer") {
        made.sqnr = data.nodes[made.inputs[0]].sqnr;  // as near as what it reads
      }
      data.nodes.push_back(std::move(made));
    }
  }

  analyze::Simulator& simulator_;
  const Graph& graph_;
  QuantSolution solution_;
  Model quantized_;
  std::map<std::string, LayerError> errors_;
};

/// The observers that the values of a plan have.
std::string observers_of(const QuantPlan& plan) {
  std::set<std::string> names;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) names.insert(value.spec.observer);
  }
  return format("{}", fmt::join(names, ", "));
}

void add_settings(const AnalyzeOptions& options, const QuantPlan& plan, report::ReportData& data) {
  const QuantConfig& config = options.quantize.config;
  data.settings = {
      {"target", config.target},
      {"activation observers", observers_of(plan)},
      {"weight observer", config.global.weight_observer.value_or(config.default_weight_observer)},
      {"weight bits", format("{}", config.global.weight_bits.value_or(8))},
      {"activation bits", format("{}", config.global.activation_bits.value_or(8))},
      {"skipped nodes", format("{}", fmt::join(config.skip_quant_node, ", "))},
      {"data", options.quantize.data.path},
      {"batch", format("{}", options.quantize.batch)}};
}

void add_summary(const Analysis& analysis, report::ReportData& data) {
  std::int64_t integer = 0;
  double worst = std::numeric_limits<double>::infinity();
  std::string worst_name = "-";
  for (const report::ReportLayer& layer : data.layers) {
    integer += layer.kind == "integer" ? 1 : 0;
    if (layer.error && layer.error->sqnr < worst) {
      worst = layer.error->sqnr;
      worst_name = layer.name;
    }
  }
  data.summary = {{"model", analysis.model_path},
                  {"layers", format("{}", data.layers.size())},
                  {"layers on integers", format("{}", integer)},
                  {"nodes", format("{}", data.nodes.size())},
                  {"calibration samples", format("{}", analysis.calibration_samples)},
                  {"least SQNR, dB", format("{:.2f} ({})", worst, worst_name)}};
  if (data.sensitivity) {
    const SensitivityResult& result = *data.sensitivity;
    data.summary.emplace_back(result.metric + " in float", format("{:.4f}", result.float_metric));
    data.summary.emplace_back(result.metric + ", all layers quantised",
                              format("{:.4f}", result.quantized_metric));
  }
}

}  // namespace

void write_report(const std::string& model_path, const AnalyzeOptions& options,
                  const std::string& path, const SensitivityResult* sensitivity,
                  const Context& context) {
  with_outputs([&](Outputs& outputs) {
    write_report(model_path, options, path, sensitivity, context, outputs);
  });
}

void write_report(const std::string& model_path, const AnalyzeOptions& options,
                  const std::string& path, const SensitivityResult* sensitivity,
                  const Context& context, Outputs& outputs) {
  reads_analysis(outputs, model_path, options);
  writes_report(outputs, path);
  AnalyzeOptions own = options;
  own.quantize.statistics.clear();
  own.save_dir.clear();
  Analysis analysis = set_up_analysis(model_path, own, AnalysisNeeds::Statistics, context);
  report::ReportData data = Gatherer(analysis, own, context).gather();
  if (sensitivity != nullptr) data.sensitivity = *sensitivity;
  data.title = format("Quench: {}", model_path);
  add_settings(own, analysis.simulator->plan(), data);
  add_summary(analysis, data);
  write_text(path, report::html_report(data), outputs);
}

}  // namespace quench
