// SPDX-License-Identifier: Apache-2.0
// Puts data, script, style and the charting library into one page.
#include "report/html_report.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "report/html_parts.h"

namespace quench::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDataStart = R"(<script id="quench-data" type="application/json">)";

Json number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return nullptr;
  return value > 0 ? 200.0 : -200.0;  // dB: without any noise, or nothing but noise
}

Json shares_json(const std::vector<double>& shares) {
  Json json = Json::array();
  for (const double each : shares) json.push_back(std::round(each * 1e6) / 1e6);
  return json;
}

Json to_json(const std::optional<ReportHistogram>& hist) {
  if (!hist) return nullptr;
  Json json = {{"name", hist->name},       {"min", number(hist->min)},
               {"max", number(hist->max)}, {"share", shares_json(hist->share)},
               {"range", nullptr},         {"params", nullptr}};
  if (!hist->quantized.empty()) json["quantized"] = shares_json(hist->quantized);
  if (hist->range) json["range"] = {number(hist->range->min), number(hist->range->max)};
  if (hist->params) {
    const ReportParams& params = *hist->params;
    json["params"] = {{"bits", params.bits},
                      {"scheme", params.scheme},
                      {"scale", params.scale},
                      {"zero_point", params.zero_point},
                      {"clipped", number(params.clipped)}};
  }
  return json;
}

Json to_json(const ReportLayer& layer, std::size_t index) {
  Json json = {{"index", index},
               {"name", layer.name},
               {"op", layer.op_type},
               {"kind", layer.kind},
               {"reason", layer.reason},
               {"bits", layer.bits > 0 ? Json(layer.bits) : Json(nullptr)},
               {"own_sqnr", layer.own_sqnr ? number(*layer.own_sqnr) : Json(nullptr)},
               {"weight_sqnr", layer.weight_sqnr ? number(*layer.weight_sqnr) : Json(nullptr)},
               {"sqnr", nullptr},
               {"cosine", nullptr},
               {"mse", nullptr},
               {"weight", to_json(layer.weight)},
               {"activation", to_json(layer.activation)}};
  if (layer.error) {
    json["sqnr"] = number(layer.error->sqnr);
    json["cosine"] = number(layer.error->cosine);
    json["mse"] = number(layer.error->mse);
  }
  return json;
}

Json to_json(const SensitivityResult& result) {
  Json layers = Json::array();
  for (const LayerSensitivity& layer : result.layers) {
    layers.push_back(
        {{"layer", layer.layer}, {"metric", number(layer.metric)}, {"sqnr", number(layer.sqnr)}});
  }
  return {{"metric", result.metric},
          {"float", number(result.float_metric)},
          {"quantized", number(result.quantized_metric)},
          {"higher_is_better", result.higher_is_better},
          {"reverse", result.reverse},
          {"samples", result.samples},
          {"layers", std::move(layers)}};
}

Json to_json(const TargetTrials& target) {
  Json points = Json::array();
  for (const TargetTrial& trial : target.trials) {
    points.push_back({{"in_float", trial.in_float},
                      {"more_bits", trial.more_bits},
                      {"value", number(trial.value)}});
  }
  return {{"metric", target.metric},
          {"at_least", number(target.at_least)},
          {"points", std::move(points)}};
}

Json to_json(const TrainingReport& training) {
  Json points = Json::array();
  for (const TrainingPoint& point : training.curve) {
    points.push_back({{"step", point.step},
                      {"loss", number(point.loss)},
                      {"rate", number(point.rate)},
                      {"score", point.score ? number(*point.score) : Json(nullptr)}});
  }
  return {{"score", training.score_name},
          {"start", training.start_score ? number(*training.start_score) : Json(nullptr)},
          {"kept", training.best_step},
          {"points", std::move(points)}};
}

Json to_json(const ReportData& data) {
  Json json = {{"title", data.title},       {"version", data.version},   {"command", data.command},
               {"cards", data.cards},       {"warnings", data.warnings}, {"summary", data.summary},
               {"settings", data.settings}, {"layers", Json::array()},   {"nodes", Json::array()},
               {"outputs", Json::array()},  {"sensitivity", nullptr},    {"target", nullptr},
               {"training", nullptr}};
  for (const OutputScores& output : data.outputs) {
    Json scores = Json::object();
    for (const auto& [metric, value] : output.scores) scores[metric] = number(value);
    json["outputs"].push_back({{"output", output.output}, {"scores", std::move(scores)}});
  }
  for (std::size_t i = 0; i < data.layers.size(); ++i) {
    json["layers"].push_back(to_json(data.layers[i], i));
  }
  for (const ReportNode& node : data.nodes) {
    json["nodes"].push_back({{"name", node.name},
                             {"op", node.op_type},
                             {"kind", node.kind},
                             {"sqnr", node.sqnr ? number(*node.sqnr) : Json(nullptr)},
                             {"depth", node.depth},
                             {"inputs", node.inputs}});
  }
  if (data.sensitivity) json["sensitivity"] = to_json(*data.sensitivity);
  if (data.target) json["target"] = to_json(*data.target);
  if (!data.training.curve.empty()) json["training"] = to_json(data.training);
  return json;
}

/// JSON inside a script element: nothing in it may look like markup.
std::string safe_in_script(const std::string& json) {
  std::string result;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      result += format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string html_report(const ReportData& data) {
  const std::string json =
      safe_in_script(to_json(data).dump(-1, ' ', true, Json::error_handler_t::replace));
  using Part = std::pair<std::string_view, std::string_view>;
  const auto parts = std::to_array<Part>({{"@CSS@", page_css()},
                                          {"@DATA@", json},
                                          {"@CHARTS@", chart_js()},
                                          {"@GRAPH@", graph_js()},
                                          {"@SCRIPT@", page_js()}});
  std::string page;
  std::string_view rest = page_html();
  for (const auto& [place, text] : parts) {
    const std::size_t at = rest.find(place);
    if (at == std::string_view::npos) fail(ErrorKind::Internal, "the page has no {}", place);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + place.size());
  }
  return page.append(rest);
}

std::string read_report_json(const std::string& path) {
  const std::string page = read_text(path);
  const std::size_t start = page.find(kDataStart);
  const std::size_t end = page.find("</script>", start == std::string::npos ? 0 : start);
  if (start == std::string::npos || end == std::string::npos) {
    fail(ErrorKind::BadData, "{}: this is not a report of quench", path);
  }
  const std::size_t first = start + kDataStart.size();
  return page.substr(first, end - first);
}

}  // namespace quench::report
