// SPDX-License-Identifier: Apache-2.0
// What quench quantize says at the end.
#include "cli/quantize_report.h"

#include <algorithm>
#include <map>

#include "cli/table.h"
#include "cli/weight_table.h"

namespace quench::cli {
namespace {

/// The worst layers are worth a look, the others are in --json.
constexpr std::size_t kWorstShown = 5;

/// "67,810 (21.2 %)".
std::string size_after(const QuantizeReport& report) {
  std::string text = grouped(report.bytes_after);
  if (report.bytes_before <= 0) return text;
  const double share =
      100.0 * static_cast<double>(report.bytes_after) / static_cast<double>(report.bytes_before);
  return text + " (" + fixed(share, 1) + " %)";
}

/// "17 convolutions, +4.9 % size".
std::string padded_channels(const QuantizeReport& report) {
  const std::int64_t without = std::max<std::int64_t>(report.bytes_after - report.padded_bytes, 1);
  const double share =
      100.0 * static_cast<double>(report.padded_bytes) / static_cast<double>(without);
  return grouped(report.padded_layers) + " convolutions, +" + fixed(share, 1) + " % size";
}

/// Layers left in float, those with one type and reason counted together.
void print_float_layers(const QuantizeReport& report) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const FloatLayer& layer : report.float_layers) ++counts[{layer.op_type, layer.reason}];
  if (counts.empty()) return;
  Table table;
  table.column("left in float").column("nodes", Align::Right).column("why");
  for (const auto& [key, count] : counts) table.row({key.first, grouped(count), key.second});
  print(table.text() + "\n");
}

/// Layers whose weights have wider steps because the processor adds products in 16 bits.
void print_coarser_layers(const QuantizeReport& report) {
  if (report.coarser_layers.empty()) return;
  Table table;
  table.column("wider steps").column("channels", Align::Right).column("times", Align::Right);
  for (const CoarserLayer& layer : report.coarser_layers) {
    table.row({layer.node, grouped(layer.changed) + " of " + grouped(layer.channels),
               fixed(layer.factor, 2)});
  }
  print(table.text() + "\n");
}

void print_worst_layers(const QuantizeReport& report) {
  if (report.layers.empty()) return;
  std::vector<LayerScore> layers = report.layers;
  std::ranges::stable_sort(layers, {}, &LayerScore::output_sqnr);
  layers.resize(std::min(layers.size(), kWorstShown));
  Table table;
  table.column("layers that cost the outputs most")
      .column("operator")
      .column("outputs, only it quantised, dB", Align::Right)
      .column("own SQNR, dB", Align::Right)
      .column("accumulated SQNR, dB", Align::Right);
  for (const LayerScore& each : layers) {
    table.row({each.node, each.op_type, fixed(each.output_sqnr, 1), fixed(each.own_sqnr, 1),
               fixed(each.accumulated_sqnr, 1)});
  }
  print(table.text() + "\n");
}

void print_scores(const QuantizeReport& report) {
  if (report.outputs.empty()) return;
  Table scores;
  scores.column("output").column("metric").column("value", Align::Right);
  for (const OutputScores& output : report.outputs) {
    for (const auto& [metric, value] : output.scores) {
      scores.row({output.output, metric, fixed(value, 4)});
    }
  }
  print(scores.text());
  print("\nagainst the float model, on " + grouped(report.validation_samples) +
        " samples that calibration did not see\n");
}

Json trial_json(const ObserverTrial& trial) {
  Json json = {{"observer", trial.observer},
               {"unclipped_layers", trial.unclipped_layers},
               {"chosen", trial.chosen},
               {"outputs", Json::array()}};
  for (const OutputScores& scores : trial.outputs) json["outputs"].push_back(to_json(scores));
  return json;
}

/// "mse", or "mse; min_max up to 5 layers before an output".
std::string chosen_observer(const QuantizeReport& report) {
  const auto chosen = std::ranges::find_if(report.observer_trials, &ObserverTrial::chosen);
  if (chosen == report.observer_trials.end() || chosen->observer == "min_max") {
    return report.activation_observer;
  }
  if (chosen->unclipped_layers == 0) return chosen->observer + "; min_max behind the last layer";
  return chosen->observer + "; min_max up to " + grouped(chosen->unclipped_layers) +
         " layers before an output";
}

Json training_json(const TrainingReport& training) {
  Json curve = Json::array();
  for (const TrainingPoint& point : training.curve) {
    Json row = {{"step", point.step}, {"loss", number(point.loss)}, {"rate", point.rate}};
    if (point.score) row["score"] = number(*point.score);
    curve.push_back(std::move(row));
  }
  Json json = {{"steps", training.steps},      {"samples", training.samples},
               {"blocks", training.blocks},    {"best_step", training.best_step},
               {"score", training.score_name}, {"images_per_second", training.images_per_second},
               {"seconds", training.seconds},  {"curve", std::move(curve)}};
  if (training.start_score) json["start_score"] = number(*training.start_score);
  return json;
}

/// "step 300 of 400", or that what it began with was better.
std::string kept_step(const TrainingReport& training) {
  if (training.best_step == 0) return "none: the validation set prefers the model before it";
  return grouped(training.best_step) + " of " + grouped(training.steps);
}

}  // namespace

Json to_json(const QuantizeReport& report) {
  Json json = {{"calibration_samples", report.calibration_samples},
               {"validation_samples", report.validation_samples},
               {"integer_nodes", report.integer_nodes},
               {"pass_through_nodes", report.pass_through_nodes},
               {"corrected_layers", report.corrected_layers},
               {"gptq_layers", report.gptq_layers},
               {"equalized_groups", report.equalized_groups},
               {"padded_layers", report.padded_layers},
               {"padded_bytes", report.padded_bytes},
               {"activation_observer", report.activation_observer},
               {"bytes_before", report.bytes_before},
               {"bytes_after", report.bytes_after},
               {"seconds", report.seconds},
               {"peak_memory_mb", report.peak_memory_mb},
               {"warnings", report.warnings}};
  json["outputs"] = Json::array();
  for (const OutputScores& scores : report.outputs) json["outputs"].push_back(to_json(scores));
  json["observer_samples"] = report.observer_samples;
  json["observer_trials"] = Json::array();
  for (const ObserverTrial& trial : report.observer_trials) {
    json["observer_trials"].push_back(trial_json(trial));
  }
  json["value_observers"] = report.value_observers;
  json["weights"] = weights_json(report);
  json["coarser_layers"] = Json::array();
  for (const CoarserLayer& layer : report.coarser_layers) {
    json["coarser_layers"].push_back({{"node", layer.node},
                                      {"changed", layer.changed},
                                      {"channels", layer.channels},
                                      {"factor", layer.factor}});
  }
  if (report.training.samples > 0) json["training"] = training_json(report.training);
  json["float_layers"] = Json::array();
  for (const FloatLayer& layer : report.float_layers) {
    json["float_layers"].push_back(
        {{"node", layer.node}, {"op_type", layer.op_type}, {"reason", layer.reason}});
  }
  json["layers"] = Json::array();
  for (const LayerScore& layer : report.layers) {
    json["layers"].push_back({{"node", layer.node},
                              {"op_type", layer.op_type},
                              {"value", layer.value},
                              {"own_sqnr", number(layer.own_sqnr)},
                              {"own_cosine", number(layer.own_cosine)},
                              {"accumulated_sqnr", number(layer.accumulated_sqnr)},
                              {"accumulated_cosine", number(layer.accumulated_cosine)},
                              {"output_sqnr", number(layer.output_sqnr)}});
  }
  if (!report.settings.empty()) json["settings"] = Json::parse(report.settings);
  return json;
}

void print_report(const QuantizeReport& report) {
  Table table;
  table.column("what").column("value", Align::Right);
  if (!report.weights.empty()) print_weights(report);
  // Of weights alone nothing runs on integers: rows of zeros would only puzzle.
  const auto count = [&](const char* what, auto number) {
    const auto value = static_cast<std::int64_t>(number);
    if (value > 0 || report.weights.empty()) table.row({what, grouped(value)});
  };
  count("nodes on integers", report.integer_nodes);
  count("nodes that only move integers", report.pass_through_nodes);
  count("nodes in float", report.float_layers.size());
  count("layers with corrected bias", report.corrected_layers);
  if (report.gptq_layers > 0) {
    table.row({"weights rounded by GPTQ", grouped(static_cast<std::int64_t>(report.gptq_layers))});
  }
  if (report.equalized_groups > 0) {
    table.row({"groups of equalised channels",
               grouped(static_cast<std::int64_t>(report.equalized_groups))});
  }
  if (report.padded_layers > 0) table.row({"padded channels", padded_channels(report)});
  if (!report.activation_observer.empty()) {
    table.row({"ranges of activations by", chosen_observer(report)});
  }
  if (report.training.samples > 0) {
    table.row({"samples trained with", grouped(report.training.samples)});
    table.row({"training step that was kept", kept_step(report.training)});
  }
  table.row({"size before, bytes", grouped(report.bytes_before)});
  table.row({"size after, bytes", size_after(report)});
  count("samples calibrated with", report.calibration_samples);
  table.row({"seconds", fixed(report.seconds, 2)});
  table.row({"most memory, MB", fixed(report.peak_memory_mb, 0)});
  print(table.text() + "\n");
  print_float_layers(report);
  print_coarser_layers(report);
  print_worst_layers(report);
  print_scores(report);
}

}  // namespace quench::cli
