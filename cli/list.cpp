// SPDX-License-Identifier: Apache-2.0
// quench list: the names that other commands take.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/table.h"
#include "quench/formats.h"
#include "quench/metrics.h"

namespace quench::cli {
namespace {

struct ListOptions {
  std::string kind;
  CommonFlags common;
};

/// A list as a table and as JSON: the first column is the name.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

Listing list_operators() {
  Listing listing{{"operator"}, {}};
  for (const std::string& name : supported_operators()) listing.rows.push_back({name});
  return listing;
}

Listing list_metrics() {
  Listing listing{{"metric", "needs", "better", "summary"}, {}};
  for (const MetricInfo& metric : all_metrics()) {
    listing.rows.push_back({std::string(metric.name), metric.needs_labels ? "labels" : "reference",
                            metric.higher_is_better ? "higher" : "lower",
                            std::string(metric.summary)});
  }
  return listing;
}

Listing list_formats() {
  Listing listing{{"format", "extension", "summary"}, {}};
  for (const FormatName& format : model_formats()) {
    listing.rows.push_back(
        {std::string(format.name), std::string(format.extension), std::string(format.summary)});
  }
  return listing;
}

Listing list_dtypes() {
  Listing listing{{"dtype", "bits", "numpy"}, {}};
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.dtype == DType::Undefined) continue;
    listing.rows.push_back(
        {std::string(type.name), std::to_string(type.bits), std::string(type.numpy)});
  }
  return listing;
}

Listing make_listing(const std::string& kind) {
  if (kind == "operators") return list_operators();
  if (kind == "metrics") return list_metrics();
  return kind == "formats" ? list_formats() : list_dtypes();
}

Json listing_json(const std::string& kind, const Listing& listing) {
  Json items = Json::array();
  for (const auto& row : listing.rows) {
    Json item;
    item["name"] = row.front();
    for (std::size_t i = 1; i < row.size(); ++i) item[listing.columns[i]] = row[i];
    items.push_back(item);
  }
  Json json;
  json[kind] = items;
  return json;
}

int run(const ListOptions& options) {
  const Listing listing = make_listing(options.kind);
  if (options.common.json) {
    print_json(listing_json(options.kind, listing));
    return kOk;
  }
  Table table;
  for (const std::string& column : listing.columns) table.column(column);
  for (const auto& row : listing.rows) table.row(row);
  print(table.text());
  return kOk;
}

}  // namespace

Command setup_list(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "list", "List operators, metrics, formats or dtypes", "quench list metrics");
  auto options = std::make_shared<ListOptions>();
  app->add_option("kind", options->kind, "operators, metrics, formats or dtypes")
      ->required()
      ->check(CLI::IsMember({"operators", "metrics", "formats", "dtypes"}))
      ->type_name("KIND");
  add_common_flags(*app, options->common, Work::Reads);
  return {app, [options] { return run(*options); }};
}

}  // namespace quench::cli
