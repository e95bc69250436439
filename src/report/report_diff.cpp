// SPDX-License-Identifier: Apache-2.0
// quench report diff: what changed between two runs.
#include <algorithm>
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
using Texts = std::vector<std::pair<std::string, std::string>>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double number(const Json& json) { return json.is_number() ? json.get<double>() : kNaN; }

/// A text of the parameters of a tensor, which may have none.
std::string param_of(const Json& tensor, const char* key) {
  if (!tensor.is_object() || !tensor.at("params").is_object()) return "";
  return tensor.at("params").at(key).get<std::string>();
}

/// What a report holds, as far as two are held against each other.
struct Side {
  Texts facts;
  Texts outputs;
  std::vector<std::pair<std::string, LayerSide>> layers;
};

LayerSide layer_side(const Json& layer) {
  return {.kind = layer.at("kind").get<std::string>(),
          .bits = layer.at("bits").is_number_integer() ? layer.at("bits").get<int>() : 0,
          .weight_scale = param_of(layer.at("weight"), "scale"),
          .activation_scale = param_of(layer.at("activation"), "scale"),
          .zero_point = param_of(layer.at("activation"), "zero_point"),
          .sqnr = number(layer.at("sqnr")),
          .own_sqnr = number(layer.at("own_sqnr"))};
}

Side side_of(const std::string& path) {
  const Json json = Json::parse(report::read_report_json(path), nullptr, false);
  try {
    Side side;
    for (const char* list : {"cards", "summary", "settings"}) {
      for (const Json& pair : json.at(list)) {
        side.facts.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
      }
    }
    for (const Json& output : json.at("outputs")) {
      for (const auto& [metric, value] : output.at("scores").items()) {
        const double score = number(value);
        side.outputs.emplace_back(output.at("output").get<std::string>() + " " + metric,
                                  std::isnan(score) ? "" : format("{:.4f}", score));
      }
    }
    for (const Json& layer : json.at("layers")) {
      side.layers.emplace_back(layer.at("name").get<std::string>(), layer_side(layer));
    }
    return side;
  } catch (const Json::exception&) {
    fail(ErrorKind::BadData, "{}: the data of this report are damaged", path);
  }
}

/// What both have, in the order of the first, then what only the second has.
std::vector<FactChange> beside(const Texts& first, const Texts& second, bool only_changes) {
  std::map<std::string, std::string> other(second.begin(), second.end());
  std::map<std::string, std::string> own(first.begin(), first.end());
  std::vector<FactChange> rows;
  for (const auto& [name, text] : first) {
    const auto found = other.find(name);
    rows.push_back({name, text, found == other.end() ? "" : found->second});
  }
  for (const auto& [name, text] : second) {
    if (!own.contains(name)) rows.push_back({name, "", text});
  }
  if (only_changes) std::erase_if(rows, [](const FactChange& row) { return row.a == row.b; });
  return rows;
}

LayerChange change_of(const std::string& name, const LayerSide& a, const LayerSide& b) {
  LayerChange change{.layer = name, .a = a, .b = b, .changed = {}};
  const auto note = [&](bool differs, const char* what) {
    if (differs) change.changed.emplace_back(what);
  };
  note(a.kind != b.kind, "kind");
  note(a.bits != b.bits, "bits");
  note(a.weight_scale != b.weight_scale, "weight scale");
  note(a.activation_scale != b.activation_scale, "activation scale");
  note(a.zero_point != b.zero_point, "zero point");
  const bool own = !std::isnan(a.own_sqnr) && !std::isnan(b.own_sqnr);
  change.change = own ? b.own_sqnr - a.own_sqnr : b.sqnr - a.sqnr;
  return change;
}

/// Another kind of layer first, then by how much the error changed.
bool changed_more(const LayerChange& a, const LayerChange& b) {
  const auto rank = [](const LayerChange& each) {
    const bool kind = each.a.kind != each.b.kind;
    return std::pair(kind, std::isnan(each.change) ? 0.0 : std::abs(each.change));
  };
  return rank(a) > rank(b);
}

}  // namespace

ReportDiff diff_reports(const std::string& path_a, const std::string& path_b) {
  const Side first = side_of(path_a);
  const Side second = side_of(path_b);
  ReportDiff diff;
  diff.facts = beside(first.facts, second.facts, true);
  diff.outputs = beside(first.outputs, second.outputs, false);
  const LayerSide missing{.kind = {},
                          .weight_scale = {},
                          .activation_scale = {},
                          .zero_point = {},
                          .sqnr = kNaN,
                          .own_sqnr = kNaN};
  const std::map<std::string, LayerSide> other(second.layers.begin(), second.layers.end());
  std::map<std::string, bool> seen;
  for (const auto& [name, side] : first.layers) {
    seen[name] = true;
    const auto found = other.find(name);
    diff.layers.push_back(change_of(name, side, found == other.end() ? missing : found->second));
  }
  for (const auto& [name, side] : second.layers) {
    if (!seen.contains(name)) diff.layers.push_back(change_of(name, missing, side));
  }
  std::ranges::stable_sort(diff.layers, changed_more);
  return diff;
}

}  // namespace quench
