// SPDX-License-Identifier: Apache-2.0
// quench list options: the table of options, in our words and in those of other tools.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "cli/listing.h"
#include "cli/option_flags.h"
#include "quench/converter_lite.h"

namespace quench::cli {
namespace {

std::string flag_of(const Option& option) {
  if (option.value.empty()) return fmt::format("--{}", option.name);
  if (option.choices.empty()) return fmt::format("--{} {}", option.name, option.value);
  return fmt::format("--{} {}", option.name, fmt::join(option.choices, "|"));
}

std::string commands_of(const Option& option) {
  std::vector<std::string> names;
  if ((option.jobs & kForQuantize) != 0) names.emplace_back("quantize");
  if ((option.jobs & kForTrain) != 0) names.emplace_back("train");
  if ((option.jobs & kForCalibrate) != 0) names.emplace_back("calibrate");
  if ((option.jobs & kForAnalyze) != 0) names.emplace_back("analyze");
  if ((option.jobs & kForSamples) != 0) names.emplace_back("eval, compare, demo");
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What a key of converter_lite means here, beside its flag.
std::string meaning(const ConverterKey& key) {
  if (key.option == nullptr) return "no effect: " + key.idle;
  if (key.option->jobs == 0) {
    return key.option->help.empty() ? "no effect: " + key.idle : std::string(key.option->help);
  }
  std::string text;
  for (const auto& [theirs, ours] : key.words) {
    if (theirs == ours) continue;
    const std::string word = ours == "true" ? "given" : ours == "false" ? "left out" : ours;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", theirs, word);
  }
  return text;
}

Listing converter_listing() {
  Listing listing{{"key", "here", "meaning"}, {}, {}};
  for (const ConverterKey& key : converter_keys()) {
    const bool flag = key.option != nullptr && key.option->jobs != 0;
    listing.rows.push_back({key.key, flag ? flag_of(*key.option) : "", meaning(key)});
    listing.headings.push_back(fmt::format("[{}]", key.section));
  }
  return listing;
}

Listing paddle_listing() {
  Listing listing{{"parameter", "here", "meaning"}, {}, {}};
  for (const Option& option : all_options()) {
    if (option.paddle.empty()) continue;
    listing.rows.push_back({std::string(option.paddle), flag_of(option), help_text(option)});
  }
  return listing;
}

/// A cell of a table: bars would end it.
std::string cell(std::string text, bool typed) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return typed && !text.empty() ? "`" + text + "`" : text;
}

}  // namespace

std::string markdown(const Listing& listing) {
  std::string text;
  std::vector<std::string> headings = listing.headings;
  // Tables in the order in which their headings first appear.
  std::vector<std::string> order;
  headings.resize(listing.rows.size());
  for (const std::string& heading : headings) {
    if (std::ranges::find(order, heading) == order.end()) order.push_back(heading);
  }
  for (const std::string& heading : order) {
    if (!heading.empty()) text += fmt::format("{}### {}\n\n", text.empty() ? "" : "\n", heading);
    text += fmt::format("| {} |\n|", fmt::join(listing.columns, " | "));
    for (std::size_t i = 0; i < listing.columns.size(); ++i) text += "---|";
    text += "\n";
    for (std::size_t row = 0; row < listing.rows.size(); ++row) {
      if (headings[row] != heading) continue;
      text += "|";
      for (std::size_t i = 0; i < listing.columns.size(); ++i) {
        const bool typed =
            i == 0 || listing.columns[i] == "here" || listing.columns[i] == "default";
        text += " " + cell(listing.rows[row][i], typed) + " |";
      }
      text += "\n";
    }
  }
  return text;
}

Listing list_options() {
  const QuantizeOptions defaults;
  Listing listing{{"option", "default", "for", "commands", "meaning"}, {}, {}};
  for (const Option& option : all_options()) {
    if (option.jobs == 0) continue;
    const std::string text = option.value.empty() ? "" : option_text(defaults, option.name);
    listing.rows.push_back({flag_of(option), text == "0" ? "" : text,
                            std::string(option.scope.words), commands_of(option),
                            help_text(option)});
    listing.headings.emplace_back(option.group.empty() ? "The result" : option.group);
  }
  return listing;
}

Json options_json() {
  const QuantizeOptions defaults;
  Json items = Json::array();
  for (const Option& option : all_options()) {
    Json item = {{"name", option.name},           {"value", option.value},
                 {"takes", option_takes(option)}, {"default", option_text(defaults, option.name)},
                 {"choices", option.choices},     {"commands", commands_of(option)},
                 {"for", option.scope.words},     {"group", option.group},
                 {"setting", option.setting},     {"ini", option.ini},
                 {"paddle", option.paddle},       {"help", option.help}};
    items.push_back(std::move(item));
  }
  return {{"options", items}};
}

Listing list_options_of(const std::string& tool) {
  return tool == "paddleslim" ? paddle_listing() : converter_listing();
}

}  // namespace quench::cli
