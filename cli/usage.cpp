// SPDX-License-Identifier: Apache-2.0
// Wrong commands and flags, answered with the nearest right one.
#include "cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/errors.h"
#include "quench/nearest.h"

namespace quench::cli {
namespace {

const CLI::App& chosen(const CLI::App& root) {
  const auto verbs = root.get_subcommands();
  return verbs.empty() ? root : chosen(*verbs.front());
}

/// What was typed to reach a command: quench analyze target.
std::string path_to(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? "quench" : path_to(*parent) + " " + app.get_name();
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The first flag that the command does not know, whatever the parser stumbled over first: the
/// value after a wrong flag is often taken for something else.
std::string first_unknown_flag(const CLI::App& root) {
  for (const std::string& word : root.remaining(true)) {
    if (word.size() > 1 && word.front() == '-') return word.substr(0, word.find('='));
  }
  return {};
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

/// What to say of a command that has commands of its own, of which none was given.
std::string missing_part(const CLI::App& app) {
  const std::vector<std::string> names = command_names(app);
  if (app.get_parent() == nullptr || names.empty()) return {};
  const std::vector<std::string> words = app.remaining();
  const std::string wrong = words.empty() ? std::string()
                                          : fmt::format(", not '{}'{}", words.front(),
                                                        did_you_mean(words.front(), names));
  return fmt::format("{} takes one of {}{}", app.get_name(), fmt::join(names, ", "), wrong);
}

}  // namespace

std::string unknown_command(const CLI::App& root, const std::string& word) {
  const std::vector<std::string> names = command_names(root);
  if (std::ranges::find(names, word) != names.end()) return {};
  return fmt::format("there is no command '{}'{} (see quench --help)", word,
                     did_you_mean(word, names));
}

int report_parse_error(CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = chosen(root);
  // Zero means that help or the version was asked for; the parser knows how to print them.
  if (error.get_exit_code() == 0) return root.exit(error);
  const auto what = [&]() -> std::string {
    if (std::string part = missing_part(app); !part.empty()) return part;
    const std::string flag = first_unknown_flag(root);
    if (flag.empty()) return error.what();
    return fmt::format("there is no flag '{}'{}", flag, did_you_mean(flag, flag_names(app)));
  };
  return report_error(fmt::format("{} (see {} --help)", what(), path_to(app)), kUsage);
}

}  // namespace quench::cli
