// SPDX-License-Identifier: Apache-2.0
// quench help: what a command does, and its flags.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/table.h"
#include "cli/usage.h"

namespace quench::cli {
namespace {

int show(const CLI::App& root, const std::vector<std::string>& words) {
  if (words.empty()) {  // help() of a command that was given leads to its part, which is this one
    print(root.get_formatter()->make_help(&root, root.get_name(), CLI::AppFormatMode::Normal));
    return kOk;
  }
  const CLI::App* app = &root;
  for (const std::string& word : words) {
    const std::string complaint = unknown_command(*app, word);
    if (!complaint.empty()) return report_error(complaint, kUsage);
    app = app->get_subcommand(word);
  }
  // As the command's own --help prints it, with the words that lead there.
  std::string path = "quench";
  for (std::size_t i = 0; i + 1 < words.size(); ++i) path += " " + words[i];
  print(app->help(path));
  return kOk;
}

}  // namespace

Command setup_help(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "help", "Say what a command does, and its flags", "quench help quantize");
  struct Flags {
    std::vector<std::string> words;
    bool all = false;  ///< looked at before the commands are set up
  };
  auto flags = std::make_shared<Flags>();
  app->add_option("command", flags->words, "A command, or a command and its part")
      ->type_name("COMMAND");
  app->add_flag("--all", flags->all, "Every option, as --help-all");
  return {app, [&root, flags] { return show(root, flags->words); }};
}

}  // namespace quench::cli
