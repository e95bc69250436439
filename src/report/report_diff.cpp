// SPDX-License-Identifier: Apache-2.0
// quench report diff: what changed between two runs.
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "quench/report.h"
#include "report/html_report.h"

namespace quench {
namespace {

using Json = nlohmann::json;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double number(const Json& json) { return json.is_number() ? json.get<double>() : kNaN; }

struct Side {
  std::string kind;
  double sqnr = kNaN;
};

/// Layers in their order, with what a report says of each.
std::vector<std::pair<std::string, Side>> layers_of(const std::string& path) {
  const Json json = Json::parse(report::read_report_json(path), nullptr, false);
  try {
    std::vector<std::pair<std::string, Side>> layers;
    for (const Json& layer : json.at("layers")) {
      layers.emplace_back(
          layer.at("name").get<std::string>(),
          Side{.kind = layer.at("kind").get<std::string>(), .sqnr = number(layer.at("sqnr"))});
    }
    return layers;
  } catch (const Json::exception&) {
    fail(ErrorKind::BadData, "{}: the data of this report are damaged", path);
  }
}

}  // namespace

std::vector<LayerChange> diff_reports(const std::string& path_a, const std::string& path_b) {
  const auto first = layers_of(path_a);
  const auto second = layers_of(path_b);
  const std::map<std::string, Side> other(second.begin(), second.end());
  std::map<std::string, bool> seen;
  std::vector<LayerChange> changes;
  for (const auto& [name, side] : first) {
    seen[name] = true;
    const auto found = other.find(name);
    LayerChange change{.layer = name, .kind_a = side.kind, .sqnr_a = side.sqnr};
    change.sqnr_b = kNaN;
    if (found != other.end()) {
      change.kind_b = found->second.kind;
      change.sqnr_b = found->second.sqnr;
    }
    changes.push_back(std::move(change));
  }
  for (const auto& [name, side] : second) {
    if (seen.contains(name)) continue;
    changes.push_back({.layer = name, .kind_b = side.kind, .sqnr_a = kNaN, .sqnr_b = side.sqnr});
  }
  return changes;
}

}  // namespace quench
