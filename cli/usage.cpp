// SPDX-License-Identifier: Apache-2.0
// Wrong commands and flags, answered with the nearest right one.
#include "cli/usage.h"

#include <fmt/format.h>

#include <vector>

#include "cli/errors.h"
#include "quench/nearest.h"

namespace quench::cli {
namespace {

const CLI::App& chosen(const CLI::App& root) {
  const auto verbs = root.get_subcommands();
  return verbs.empty() ? root : *verbs.front();
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

}  // namespace

std::string unknown_command(const CLI::App& root, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* verb : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return {};
    names.push_back(verb->get_name());
  }
  return fmt::format("there is no command '{}'{} (see quench --help)", word,
                     did_you_mean(word, names));
}

int report_parse_error(CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = chosen(root);
  // Zero means that help or the version was asked for; the parser knows how to print them.
  if (error.get_exit_code() == 0) return root.exit(error);
  const std::string command = app.get_parent() == nullptr ? "quench" : "quench " + app.get_name();
  const std::string unknown = first_unknown_flag(root);
  const std::string what = unknown.empty() ? std::string(error.what())
                                           : fmt::format("there is no flag '{}'{}", unknown,
                                                         did_you_mean(unknown, flag_names(app)));
  return report_error(fmt::format("{} (see {} --help)", what, command), kUsage);
}

}  // namespace quench::cli
