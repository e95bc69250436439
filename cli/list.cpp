// SPDX-License-Identifier: Apache-2.0
// quench list: the names that other commands take.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "quench/formats.h"
#include "quench/metrics.h"
#include "quench/presets.h"
#include "quench/quant_config.h"
#include "quench/quanters.h"
#include "quench/quantize.h"
#include "quench/statistics.h"

namespace quench::cli {
namespace {

struct ListOptions {
  std::string kind;
  std::string tool;
  std::string format;
  bool markdown = false;
  CommonFlags common;
};

Listing list_operators() {
  Listing listing{{"operator"}, {}};
  for (const std::string& name : supported_operators()) listing.rows.push_back({name});
  return listing;
}

/// What a format calls those that are read from it.
Listing list_operators_of(const std::string& format) {
  Listing listing{{"operator"}, {}};
  for (const std::string& name : format_operators(format)) listing.rows.push_back({name});
  return listing;
}

std::string needs_of(const MetricInfo& metric) {
  if (metric.needs_labels) return "labels";
  return metric.truth ? "labels or reference" : "reference";
}

Listing list_metrics() {
  Listing listing{{"metric", "needs", "better", "summary"}, {}};
  for (const MetricInfo& metric : all_metrics()) {
    listing.rows.push_back({std::string(metric.name), needs_of(metric),
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

Listing list_observers() {
  Listing listing{{"observer", "also called", "summary"}, {}};
  for (const ObserverInfo& observer : all_observers()) {
    listing.rows.push_back(
        {std::string(observer.name), std::string(observer.alias), std::string(observer.summary)});
  }
  return listing;
}

Listing list_targets() {
  Listing listing{{"target", "summary"}, {}};
  for (const TargetInfo& target : all_targets()) {
    listing.rows.push_back({std::string(target.name), std::string(target.summary)});
  }
  return listing;
}

Listing list_techniques() {
  Listing listing{{"technique", "needs", "for", "summary"}, {}};
  for (const TechniqueInfo& each : all_techniques()) {
    listing.rows.push_back({std::string(each.name), std::string(each.needs),
                            std::string(each.types), std::string(each.summary)});
  }
  return listing;
}

Listing list_quanters() {
  Listing listing{{"quanter", "for", "summary"}, {}};
  for (const QuanterInfo& each : all_quanters()) {
    listing.rows.push_back(
        {std::string(each.name), std::string(each.use), std::string(each.summary)});
  }
  return listing;
}

Listing list_presets() {
  Listing listing{{"preset", "summary"}, {}};
  for (const Preset& preset : all_presets()) {
    listing.rows.push_back({std::string(preset.name), std::string(preset.summary)});
  }
  return listing;
}

struct Kind {
  const char* name;
  Listing (*list)();
};
constexpr std::array<Kind, 10> kKinds = {{{"operators", list_operators},
                                          {"metrics", list_metrics},
                                          {"observers", list_observers},
                                          {"targets", list_targets},
                                          {"techniques", list_techniques},
                                          {"quanters", list_quanters},
                                          {"presets", list_presets},
                                          {"formats", list_formats},
                                          {"dtypes", list_dtypes},
                                          {"options", list_options}}};

/// Long lists of single names are a paragraph in documents.
std::string in_one_line(const Listing& listing) {
  std::string text;
  for (const auto& row : listing.rows) text += (text.empty() ? "" : ", ") + row.front();
  return text + "\n";
}

Listing make_listing(const std::string& kind) {
  const auto* const found =
      std::ranges::find_if(kKinds, [&](const Kind& each) { return each.name == kind; });
  return found->list();
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
  if (!options.tool.empty() && options.kind != "options") {
    throw Error(ErrorKind::Usage, "--of is for quench list options");
  }
  if (!options.format.empty() && options.kind != "operators") {
    throw Error(ErrorKind::Usage, "--format is for quench list operators");
  }
  const Listing listing = !options.format.empty() ? list_operators_of(options.format)
                          : options.tool.empty()  ? make_listing(options.kind)
                                                  : list_options_of(options.tool);
  if (options.markdown) {
    print(options.format.empty() ? markdown(listing) : in_one_line(listing));
    return kOk;
  }
  if (options.common.json) {
    if (options.kind == "options" && options.tool.empty()) return print_json(options_json()), kOk;
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

std::vector<std::string> listed_names(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& row : make_listing(kind).rows) names.push_back(row.front());
  return names;
}

Command setup_list(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "list", "List the names that other commands take", "quench list metrics");
  auto options = std::make_shared<ListOptions>();
  std::vector<std::string> kinds;
  for (const Kind& kind : kKinds) kinds.emplace_back(kind.name);
  app->add_option("kind", options->kind, "What to list")
      ->required()
      ->check(CLI::IsMember(kinds))
      ->type_name("KIND");
  app->add_option("--of", options->tool, "Options: what another tool calls them")
      ->check(CLI::IsMember({"converter_lite", "paddleslim"}))
      ->type_name("TOOL");
  app->add_option("--format", options->format, "Operators: those that are read from a format")
      ->type_name("FORMAT");
  app->add_flag("--markdown", options->markdown, "Print tables for documents");
  add_common_flags(*app, options->common, Work::Reads);
  return {app, [options] { return run(*options); }};
}

}  // namespace quench::cli
