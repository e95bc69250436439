// SPDX-License-Identifier: Apache-2.0
// Gathers what the HTML report shows.
#include "report/job_page.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "analyze/layer_error.h"
#include "base/format.h"
#include "plan/facts.h"
#include "report/histograms.h"

namespace quench::report {
namespace {

/// Where there is no validation set, layers are compared on so many samples of the calibration set.
constexpr std::int64_t kCompared = 16;
constexpr std::int64_t kRun = 4;

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
      : state_(state), graph_(state.model.graph), written_(quantized.graph) {
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
    if (const auto stored = weights_.find(layer.name); stored != weights_.end()) {
      const WeightChoice& choice = *stored->second;
      layer.bits = choice.bits;
      layer.weight_sqnr = -20 * std::log10(choice.error);
      layer.weight = stored_histogram(choice.weight, *weight, choice.bits, written_,
                                      node_called(written_, output_name(graph_, node)));
      return;
    }
    const auto params = state_.solution.weights.find({output_name(graph_, node), 1});
    const bool planned = params != state_.solution.weights.end();
    layer.weight =
        weight_histogram(graph_[node.inputs[1]].name, *weight, planned ? &params->second : nullptr);
    if (planned) layer.bits = params->second.spec.bits;
  }

  void add_activation(const Node& node, ReportLayer& layer) const {
    const std::string& input = graph_[node.inputs.at(0)].name;
    const auto seen = state_.statistics.find(input);
    if (seen == state_.statistics.end()) return;
    const auto params = state_.solution.values.find(input);
    layer.activation = activation_histogram(
        input, seen->second, params == state_.solution.values.end() ? nullptr : &params->second);
  }

  const tune::State& state_;
  const Graph& graph_;
  const Graph& written_;
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
  const auto add_some = [&](std::string key, std::int64_t count) {  // what was not done is not told
    if (count > 0) add(std::move(key), format("{}", count));
  };
  add_some("calibration samples", report.calibration_samples);
  add_some("layers with corrected bias", static_cast<std::int64_t>(report.corrected_layers));
  add_some("groups of equalised channels", static_cast<std::int64_t>(report.equalized_groups));
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

std::string megabytes(std::int64_t bytes) {
  return format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

void add_cards(const tune::State& state, ReportData& data) {
  const QuantizeReport& report = state.report;
  if (report.bytes_after > 0) {
    data.cards.emplace_back(
        "size", format("{} to {}", megabytes(report.bytes_before), megabytes(report.bytes_after)));
  }
  for (const OutputScores& output : report.outputs) {
    data.cards.emplace_back(format("{}: SQNR", output.output),
                            format("{:.2f} dB", output.scores.at("sqnr")));
    const auto same = output.scores.find("agreement");
    if (same == output.scores.end()) continue;
    data.cards.emplace_back(format("{}: same answers as float", output.output),
                            format("{:.2f} %", same->second));
  }
}

/// The least time of a run, in milliseconds.
struct Timed {
  explicit Timed(const Model& model, const Context& context) : session(model, {}, context) {}
  void run(const TensorMap& inputs) {
    const auto start = std::chrono::steady_clock::now();
    (void)session.run(inputs);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }

  Session session;
  double least = std::numeric_limits<double>::infinity();
};

/// In turns, so that what else the machine does falls on both; it only ever makes runs longer.
void time_both(Timed& one, Timed& other, const TensorMap& inputs, const Context& context) {
  constexpr std::chrono::milliseconds kTime(400);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 4 || std::chrono::steady_clock::now() - began < kTime; ++i) {
    context.check_cancelled();
    one.run(inputs);
    other.run(inputs);
  }
}

std::string rows_of(const TensorMap& inputs) {
  const Shape& shape = inputs.begin()->second.shape();
  const std::int64_t rows = shape.empty() ? 1 : shape[0];
  return format("{} sample{}", rows, rows == 1 ? "" : "s");
}

/// What each layer alone does to the outputs, as the job found it.
SensitivityResult effects_of(const QuantizeReport& report, std::int64_t samples) {
  SensitivityResult result{.metric = "sqnr", .samples = samples};
  result.float_metric = std::numeric_limits<double>::quiet_NaN();
  result.quantized_metric = std::numeric_limits<double>::quiet_NaN();
  for (const LayerScore& layer : report.layers) {
    result.layers.push_back({.layer = layer.node,
                             .op_type = layer.op_type,
                             .metric = layer.output_sqnr,
                             .sqnr = layer.output_sqnr,
                             .samples = samples});
  }
  std::ranges::stable_sort(result.layers, {}, &LayerSensitivity::metric);
  return result;
}

}  // namespace

ReportData page_of(const tune::State& state, const Model& quantized,
                   const std::string& model_path) {
  ReportData data;
  const Gatherer gatherer(state, quantized);
  gatherer.add_layers(data);
  gatherer.add_nodes(data);
  data.title = format("Quench: {}", std::filesystem::path(model_path).filename().string());
  data.version = "quench " QUENCH_VERSION;
  data.command = state.options.command;
  data.warnings = state.report.warnings;
  data.outputs = state.report.outputs;
  data.training = state.report.training;
  if (!state.report.layers.empty()) {
    data.sensitivity = effects_of(state.report, state.samples.run_size());
  }
  add_settings(state, data);
  add_summary(state, model_path, data);
  add_cards(state, data);
  return data;
}

void add_speed(const tune::State& state, const Model& written, ReportData& data) {
  const std::vector<TensorMap> runs = compared_runs(state);
  if (runs.empty()) return;
  Timed before(state.model, state.context);
  Timed after(written, state.context);
  time_both(before, after, runs.front(), state.context);
  data.cards.emplace_back(
      format("a run of {} on this machine, float and quantised", rows_of(runs.front())),
      format("{:.2f} and {:.2f} ms ({:.2f}x)", before.least, after.least,
             before.least / after.least));
}

void add_sensitivity(const SensitivityResult& result, ReportData& data) {
  data.sensitivity = result;
  if (result.metric == "sqnr") {
    data.cards.emplace_back("SQNR, all layers quantised",
                            format("{:.2f} dB", result.quantized_metric));
  } else {
    data.cards.emplace_back(
        format("{}, float and all layers quantised", result.metric),
        format("{:.2f} and {:.2f}", result.float_metric, result.quantized_metric));
  }
  data.summary.emplace_back(result.metric + " in float", format("{:.4f}", result.float_metric));
  data.summary.emplace_back(result.metric + ", all layers quantised",
                            format("{:.4f}", result.quantized_metric));
}

void write_page(const ReportData& data, const std::string& path, Outputs& outputs) {
  write_text(path, html_report(data), outputs);
}

}  // namespace quench::report
