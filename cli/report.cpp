// SPDX-License-Identifier: Apache-2.0
// quench report: what changed between two HTML reports.
#include "quench/report.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
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
  CommonFlags common;
};

int run_diff(const DiffFlags& flags) {
  const std::vector<LayerChange> changes = diff_reports(flags.first, flags.second);
  if (flags.common.json) {
    Json json = {{"layers", Json::array()}};
    for (const LayerChange& change : changes) {
      json["layers"].push_back({{"layer", change.layer},
                                {"kind_a", change.kind_a},
                                {"kind_b", change.kind_b},
                                {"sqnr_a", number(change.sqnr_a)},
                                {"sqnr_b", number(change.sqnr_b)}});
    }
    print_json(json);
    return kOk;
  }
  Table table;
  table.column("layer").column("first").column("second");
  table.column("SQNR, dB", Align::Right).column("SQNR, dB", Align::Right);
  table.column("change", Align::Right);
  for (const LayerChange& change : changes) {
    table.row({change.layer, change.kind_a, change.kind_b, fixed(change.sqnr_a, 2),
               fixed(change.sqnr_b, 2), fixed(change.sqnr_b - change.sqnr_a, 2)});
  }
  print(table.text());
  return kOk;
}

}  // namespace

Command setup_report(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "report", "Compare two HTML reports", "quench report diff a.html b.html");
  app->require_subcommand(1);
  CLI::App* diff =
      add_verb(*app, "diff", "Show each layer in both reports", "quench report diff a.html b.html");
  auto flags = std::make_shared<DiffFlags>();
  diff->add_option("first", flags->first, "A report")->required()->type_name("HTML");
  diff->add_option("second", flags->second, "Another")->required()->type_name("HTML");
  add_common_flags(*diff, flags->common, Work::Reads);
  return {app, [flags] { return run_diff(*flags); }};
}

}  // namespace quench::cli
