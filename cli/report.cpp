// SPDX-License-Identifier: Apache-2.0
// quench report: what changed between two HTML reports.
#include "quench/report.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

struct DiffFlags {
  std::string first;
  std::string second;
  bool all = false;
  CommonFlags common;
};

Json side_json(const LayerSide& side) {
  return {{"kind", side.kind},
          {"bits", side.bits},
          {"weight_scale", side.weight_scale},
          {"activation_scale", side.activation_scale},
          {"zero_point", side.zero_point},
          {"sqnr", number(side.sqnr)},
          {"own_sqnr", number(side.own_sqnr)}};
}

Json facts_json(const std::vector<FactChange>& facts) {
  Json json = Json::array();
  for (const FactChange& fact : facts) {
    json.push_back({{"name", fact.name}, {"a", fact.a}, {"b", fact.b}});
  }
  return json;
}

Json diff_json(const ReportDiff& diff) {
  Json json = {{"outputs", facts_json(diff.outputs)},
               {"facts", facts_json(diff.facts)},
               {"layers", Json::array()}};
  for (const LayerChange& change : diff.layers) {
    json["layers"].push_back({{"layer", change.layer},
                              {"a", side_json(change.a)},
                              {"b", side_json(change.b)},
                              {"changed", change.changed},
                              {"change", number(change.change)}});
  }
  return json;
}

void print_facts(const char* what, const std::vector<FactChange>& facts) {
  if (facts.empty()) return;
  Table table;
  table.column(what).column("first", Align::Right).column("second", Align::Right);
  for (const FactChange& fact : facts) table.row({fact.name, fact.a, fact.b});
  print(table.text() + "\n");
}

/// "8", "8 -> 4", "- -> 8": one word where nothing changed.
std::string both(const std::string& a, const std::string& b) {
  const auto word = [](const std::string& text) { return text.empty() ? "-" : text; };
  return a == b ? word(a) : fmt::format("{} -> {}", word(a), word(b));
}

std::string bits_of(const LayerSide& side) {
  return side.bits > 0 ? fmt::format("{}", side.bits) : "";
}

void print_layers(const ReportDiff& diff, bool all) {
  Table table;
  table.column("layer").column("kind").column("bits").column("weight scale");
  table.column("activation scale").column("zero point");
  table.column("own SQNR, dB", Align::Right).column("accumulated", Align::Right);
  table.column("change", Align::Right);
  std::size_t left_out = 0;
  for (const LayerChange& change : diff.layers) {
    const auto& [layer, a, b, changed, by] = change;
    if (!all && changed.empty() && (by == 0 || std::isnan(by))) {
      ++left_out;
      continue;
    }
    table.row({layer, both(a.kind, b.kind), both(bits_of(a), bits_of(b)),
               both(a.weight_scale, b.weight_scale), both(a.activation_scale, b.activation_scale),
               both(a.zero_point, b.zero_point), both(fixed(a.own_sqnr, 2), fixed(b.own_sqnr, 2)),
               both(fixed(a.sqnr, 2), fixed(b.sqnr, 2)), fixed(by, 2)});
  }
  if (left_out < diff.layers.size()) print(table.text());
  if (left_out > 0) {
    print(grouped(static_cast<std::int64_t>(left_out)) +
          " layers did not change (--all shows them)\n");
  }
}

int run_diff(const DiffFlags& flags) {
  const ReportDiff diff = diff_reports(flags.first, flags.second);
  if (flags.common.json) {
    print_json(diff_json(diff));
    return kOk;
  }
  print_facts("output", diff.outputs);
  print_facts("what differs", diff.facts);
  print_layers(diff, flags.all);
  return kOk;
}

}  // namespace

Command setup_report(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "report", "Compare two HTML reports", "quench report diff a.html b.html");
  app->require_subcommand(1);
  CLI::App* diff = add_verb(*app, "diff", "Show what changed, the layer that changed most first",
                            "quench report diff a.html b.html");
  auto flags = std::make_shared<DiffFlags>();
  diff->add_option("first", flags->first, "A report")->required()->type_name("HTML");
  diff->add_option("second", flags->second, "Another")->required()->type_name("HTML");
  diff->add_flag("--all", flags->all, "Layers that did not change, too");
  add_common_flags(*diff, flags->common, Work::Reads);
  return {app, [flags] { return run_diff(*flags); }};
}

}  // namespace quench::cli
