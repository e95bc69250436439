// SPDX-License-Identifier: Apache-2.0
// The flags that the table of options makes.
#include "cli/option_flags.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cmath>
#include <map>

#include "cli/common.h"

namespace quench::cli {
namespace {

/// What a value may be, for the help; `set_option` checks it.
std::string allowed(const Option& option) {
  if (!option.choices.empty()) return fmt::format("{{{}}}", fmt::join(option.choices, ","));
  if (std::isfinite(option.most)) return fmt::format("[{} to {}]", option.least, option.most);
  return std::isfinite(option.least) ? fmt::format("{} or more", option.least) : "";
}

/// Whether the help says what holds where the option is left out: not where that is "none".
bool shows_default(const Option& option, const std::string& text) {
  const bool number = option.kind == OptionKind::Whole || option.kind == OptionKind::Number;
  return !text.empty() && !(number && text == "0");
}

}  // namespace

std::string help_text(const Option& option) {
  if (option.list.empty()) return std::string(option.help);
  return fmt::format("{} (see quench list {})", option.help, option.list);
}

void OptionFlags::add_flag(CLI::App& app, const Option& option, const QuantizeOptions& defaults) {
  Flag& flag = flags_.emplace_back();
  flag.option = &option;
  const std::string name = fmt::format("--{}", option.name);
  const std::string help = help_text(option);
  if (option.value.empty()) {
    flag.flag = app.add_flag(name, flag.on, help);
  } else if (option.many) {
    flag.flag = app.add_option(name, flag.words, help)->allow_extra_args(option.value == "FILES");
  } else {
    flag.flag = app.add_option(name, flag.word, help);
    if (const std::string text = option_text(defaults, option.name); shows_default(option, text)) {
      flag.flag->default_str(text);
    }
    if (!option.bare.empty()) flag.flag->expected(0, 1)->default_str(std::string(option.bare));
  }
  if (!option.value.empty()) flag.flag->type_name(std::string(option.value));
  if (const std::string words = allowed(option); !words.empty()) {
    flag.flag->check(CLI::Validator([](std::string&) { return std::string(); }, words));
  }
  if (!option.group.empty()) flag.flag->group(std::string(option.group));
  if (!option.basic) for_experts(flag.flag);
}

void OptionFlags::add(CLI::App& app, unsigned job, const QuantizeOptions& defaults) {
  std::map<std::string_view, std::vector<CLI::Option*>> rivals;
  for (const Option& option : all_options()) {
    if ((option.jobs & job) == 0) continue;
    add_flag(app, option, defaults);
    if (option.one_of.empty()) continue;
    for (CLI::Option* rival : rivals[option.one_of]) flags_.back().flag->excludes(rival);
    rivals[option.one_of].push_back(flags_.back().flag);
  }
}

void OptionFlags::apply(QuantizeOptions& options) const {
  for (const Flag& flag : flags_) {
    if (flag.flag->count() == 0) continue;
    const bool is_switch = flag.option->value.empty();
    if (is_switch && flag.option->alias && !flag.on) continue;
    set_option(options, flag.option->name,
               is_switch           ? std::vector<std::string>{flag.on ? "true" : "false"}
               : flag.option->many ? flag.words
                                   : std::vector<std::string>{flag.word});
  }
}

std::vector<std::string_view> OptionFlags::given() const {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags_) {
    if (flag.flag->count() > 0) names.push_back(flag.option->name);
  }
  return names;
}

void add_data_flags(CLI::App& app, DataFlags& flags) {
  flags.options.add(app, kForSamples);
  for_experts(app.add_option("--data-config", flags.config,
                             "INI file with a [data_preprocess_param] section; flags override it"))
      ->type_name("INI");
}

DataOptions data_options(const DataFlags& flags) {
  QuantizeOptions options;
  if (!flags.config.empty()) options.data = read_data_section(flags.config);
  flags.options.apply(options);
  return options.data;
}

}  // namespace quench::cli
