// SPDX-License-Identifier: Apache-2.0
// JSON on stdout.
#include "cli/json.h"

#include <cmath>
#include <cstdio>

namespace quench::cli {

namespace {

std::string text_of(const Json& json) {
  // Names in a model file need not be valid UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void print_json(const Json& json) {
  const std::string text = text_of(json);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void write_json(const Json& json, const std::string& path, Outputs& outputs) {
  write_text(path, text_of(json), outputs);
}

Json number(double value) { return std::isinf(value) ? std::copysign(1e308, value) : value; }

Json to_json(const Value& value) {
  Json shape;
  if (value.type.shape) {
    shape = Json::array();
    for (const Dim& dim : *value.type.shape) {
      if (dim.known()) {
        shape.push_back(dim.value);
      } else {
        shape.push_back(dim.symbol.empty() ? Json() : Json(dim.symbol));
      }
    }
  }
  return {{"name", value.name}, {"type", name_of(value.type.dtype)}, {"shape", shape}};
}

Json to_json(const OutputScores& scores) {
  Json json = {{"name", scores.output}};
  for (const auto& [metric, value] : scores.scores) json[metric] = number(value);
  return json;
}

Json to_json(const BenchResult& result) {
  Json json = {{"model", result.model},         {"batch", result.batch},
               {"threads", result.threads},     {"runs", result.runs},
               {"median_ms", result.median_ms}, {"p95_ms", result.p95_ms},
               {"min_ms", result.min_ms},       {"samples_per_second", result.samples_per_second},
               {"load_ms", result.load_ms},     {"peak_rss_mb", result.peak_rss_mb}};
  for (const BenchStep& step : result.steps) {
    json["steps"].push_back({{"node", step.node}, {"op_type", step.op_type}, {"ms", step.mean_ms}});
  }
  return json;
}

}  // namespace quench::cli
