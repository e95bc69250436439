// SPDX-License-Identifier: Apache-2.0
// Gathers what the HTML report shows.
#include "report/job_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyze/layer_error.h"
#include "base/format.h"
#include "plan/facts.h"
#include "report/statistics_table.h"

namespace quench::report {
namespace {

constexpr std::size_t kBars = 60;
/// Where there is no validation set, layers are compared on so many samples of the calibration set.
constexpr std::int64_t kCompared = 16;
constexpr std::int64_t kRun = 4;

ReportHistogram histogram_of(const std::string& name, const Statistic& statistic,
                             const QuantParams* params) {
  ReportHistogram hist{
      .name = name, .min = statistic.min, .max = statistic.max, .share = shares(statistic, kBars)};
  if (params == nullptr || params->scale.empty()) return hist;
  Range range;
  for (std::size_t i = 0; i < params->scale.size(); ++i) {
    const auto end = [&](std::int64_t step) {
      return static_cast<double>(step - params->zero_point[i]) *
             static_cast<double>(params->scale[i]);
    };
    range.min = std::min(range.min, end(params->spec.q_min()));
    range.max = std::max(range.max, end(params->spec.q_max()));
  }
  hist.range = range;
  return hist;
}

std::vector<TensorMap> compared_runs(const tune::State& state) {
  if (state.validation.able()) {
    return state.validation.inputs(std::numeric_limits<std::size_t>::max());
  }
  if (!state.samples.any()) return {};
  return state.samples.read(state.samples.first(kCompared), kRun);
}

/// The model, its quantisation parameters and its errors, put together for the page.
class Gatherer {
 public:
  Gatherer(const tune::State& state, const Model& quantized)
      : state_(state), graph_(state.model.graph) {
    for (const LayerScore& score : state.report.layers) own_[score.node] = score.own_sqnr;
    for (const WeightChoice& weight : state.report.weights) weights_[weight.node] = &weight;
    const std::vector<TensorMap> runs = compared_runs(state);
    if (runs.empty()) return;
    for (LayerError& error : analyze::layer_errors(
             state.model, quantized, analyze::compared_values(state.model, state.plan), runs,
             state.context)) {
      const std::string layer = error.layer;
      errors_[layer] = std::move(error);
    }
  }

  void add_layers(ReportData& data) const {
    for (const Node& node : graph_.nodes) {
      const std::string name = plan::key_of(graph_, node);
      if (!plan::is_layer(node) && !weights_.contains(name)) continue;
      ReportLayer layer{.name = name, .op_type = node.op_type, .kind = kind_of(node)};
      layer.reason = state_.plan.of(graph_, node).reason;
      if (const auto found = errors_.find(name); found != errors_.end()) {
        layer.error = found->second;
      }
      if (const auto own = own_.find(name); own != own_.end()) layer.own_sqnr = own->second;
      add_weight(node, layer);
      add_activation(node, layer);
      data.layers.push_back(std::move(layer));
    }
  }

  void add_nodes(ReportData& data) const {
    const Uses uses(graph_);
    for (const Node& node : graph_.nodes) {
      ReportNode made{
          .name = plan::key_of(graph_, node), .op_type = node.op_type, .kind = kind_of(node)};
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

 private:
  std::string kind_of(const Node& node) const {
    if (weights_.contains(plan::key_of(graph_, node))) return "weight";
    const NodePlan::Kind kind = state_.plan.of(graph_, node).kind;
    if (kind == NodePlan::Kind::Integer) return "integer";
    return kind == NodePlan::Kind::PassThrough ? "moves" : "float";
  }

  void add_weight(const Node& node, ReportLayer& layer) const {
    const Tensor* weight = graph_.constant(node.input(1));
    if (weight == nullptr) weight = graph_.constant(node.input(0));  // an embedding
    if (weight == nullptr || !info(weight->dtype()).is_float) return;
    Statistic statistic;
    statistic.add_sample(to_float(*weight));
    const auto params = state_.solution.weights.find({output_name(graph_, node), 1});
    const bool planned = params != state_.solution.weights.end();
    const auto stored = weights_.find(layer.name);
    const std::string& name =
        stored != weights_.end() ? stored->second->weight : graph_[node.inputs[1]].name;
    layer.weight = histogram_of(name, statistic, planned ? &params->second : nullptr);
    if (planned) layer.bits = params->second.spec.bits;
    if (stored == weights_.end()) return;
    layer.bits = stored->second->bits;
    layer.weight_sqnr = -20 * std::log10(stored->second->error);
  }

  void add_activation(const Node& node, ReportLayer& layer) const {
    const std::string& input = graph_[node.inputs.at(0)].name;
    const auto seen = state_.statistics.find(input);
    if (seen == state_.statistics.end()) return;
    const auto params = state_.solution.values.find(input);
    layer.activation = histogram_of(
        input, seen->second, params == state_.solution.values.end() ? nullptr : &params->second);
  }

  const tune::State& state_;
  const Graph& graph_;
  std::map<std::string, LayerError> errors_;
  std::map<std::string, double> own_;
  std::map<std::string, const WeightChoice*> weights_;
};

const char* name_of(QuantType type) {
  switch (type) {
    case QuantType::Weight:
      return "weight";
    case QuantType::Dynamic:
      return "dynamic";
    case QuantType::None:
    case QuantType::Full:
      break;
  }
  return "full";
}

/// The observers that the values of a plan have.
std::string observers_of(const QuantPlan& plan) {
  std::set<std::string> names;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) names.insert(value.spec.observer);
  }
  return format("{}", fmt::join(names, ", "));
}

void add_settings(const tune::State& state, ReportData& data) {
  const QuantizeOptions& options = state.options;
  const QuantConfig& config = options.config;
  data.settings = {{"type", name_of(options.type)}, {"target", config.target}};
  if (!state.plan.values.empty()) {
    data.settings.emplace_back("activation observers", observers_of(state.plan));
    data.settings.emplace_back(
        "weight observer", config.global.weight_observer.value_or(config.default_weight_observer));
    data.settings.emplace_back("weight bits", format("{}", config.global.weight_bits.value_or(8)));
    data.settings.emplace_back("activation bits",
                               format("{}", config.global.activation_bits.value_or(8)));
  } else {
    data.settings.emplace_back("weight bits", format("{}", options.weight.bits));
  }
  data.settings.emplace_back("skipped nodes",
                             format("{}", fmt::join(config.skip_quant_node, ", ")));
  data.settings.emplace_back("data", options.data.path);
  data.settings.emplace_back("statistics", format("{}", fmt::join(options.statistics, ", ")));
  data.settings.emplace_back("batch", format("{}", options.batch));
}

void add_summary(const tune::State& state, const std::string& model_path, ReportData& data) {
  const QuantizeReport& report = state.report;
  const auto add = [&](std::string key, std::string value) {
    data.summary.emplace_back(std::move(key), std::move(value));
  };
  std::int64_t integer = 0;
  const ReportLayer* worst = nullptr;
  for (const ReportLayer& layer : data.layers) {
    integer += layer.kind == "float" ? 0 : 1;
    if (!layer.error) continue;
    if (worst == nullptr || layer.error->sqnr < worst->error->sqnr) worst = &layer;
  }
  add("model", model_path);
  add("layers", format("{}", data.layers.size()));
  add("layers on integers", format("{}", integer));
  add("nodes", format("{}", data.nodes.size()));
  add("size before, bytes", format("{}", report.bytes_before));
  if (report.bytes_after > 0) add("size after, bytes", format("{}", report.bytes_after));
  add("calibration samples", format("{}", report.calibration_samples));
  add("layers with corrected bias", format("{}", report.corrected_layers));
  add("groups of equalised channels", format("{}", report.equalized_groups));
  if (report.training.steps > 0) {
    add("training steps", format("{}", report.training.steps));
    add("step that was kept", format("{}", report.training.best_step));
    if (report.training.start_score) {
      add(format("validation {} before training", report.training.score_name),
          format("{:.4f}", *report.training.start_score));
    }
  }
  if (worst != nullptr) {
    add("least accumulated SQNR, dB", format("{:.2f} ({})", worst->error->sqnr, worst->name));
  }
  for (const OutputScores& output : report.outputs) {
    add(format("output {}, SQNR in dB", output.output), format("{:.2f}", output.scores.at("sqnr")));
  }
}

}  // namespace

ReportData page_of(const tune::State& state, const Model& quantized,
                   const std::string& model_path) {
  ReportData data;
  const Gatherer gatherer(state, quantized);
  gatherer.add_layers(data);
  gatherer.add_nodes(data);
  data.title = format("Quench: {}", model_path);
  data.outputs = state.report.outputs;
  data.training = state.report.training;
  add_settings(state, data);
  add_summary(state, model_path, data);
  return data;
}

ReportHistogram histogram_of(const std::string& name, const Tensor& weight) {
  Statistic statistic;
  statistic.add_sample(to_float(weight));
  return histogram_of(name, statistic, nullptr);
}

void add_sensitivity(const SensitivityResult& result, ReportData& data) {
  data.sensitivity = result;
  data.summary.emplace_back(result.metric + " in float", format("{:.4f}", result.float_metric));
  data.summary.emplace_back(result.metric + ", all layers quantised",
                            format("{:.4f}", result.quantized_metric));
}

void write_page(const ReportData& data, const std::string& path, Outputs& outputs) {
  write_text(path, html_report(data), outputs);
}

}  // namespace quench::report
