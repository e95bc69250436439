// SPDX-License-Identifier: Apache-2.0
// quench man: manual pages, made of what the help is made of.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "quench/files.h"

namespace quench::cli {
namespace {

/// Text as roff takes it: a backslash, a dash, and a dot or quote at the start mean something
/// there.
std::string roff(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool start = i == 0 || text[i - 1] == '\n';
    if (start && (text[i] == '.' || text[i] == '\'')) result += "\\&";
    if (text[i] == '\\') {
      result += "\\e";
    } else if (text[i] == '-') {
      result += "\\-";
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string title_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? "quench"
                                     : title_of(*app.get_parent()) + "-" + app.get_name();
}

std::vector<const CLI::App*> parts_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string synopsis(const CLI::App& app) {
  std::string words = title_of(app);
  for (char& c : words) c = c == '-' ? ' ' : c;
  std::string text = fmt::format(".B {}\n", roff(words));
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string value = option->get_type_name().substr(0, option->get_type_name().find(':'));
    text += option->get_required() ? fmt::format(".I {}\n", roff(value))
                                   : fmt::format("[{}]\n", roff(value));
  }
  return text + (parts_of(app).empty() ? "[options]\n" : "COMMAND ...\n");
}

/// Flags under their headings, those without one first.
std::string options_text(const CLI::App& app) {
  std::map<std::string, std::string> groups;
  std::vector<std::string> order;
  for (const CLI::Option* option : app.get_options()) {
    std::string group = option->get_positional() ? "Arguments" : option->get_group();
    if (group.empty()) group = "More options";
    if (!groups.contains(group)) order.push_back(group);
    std::string& text = groups[group];
    text += fmt::format(".TP\n.B {} {}\n{}\n", roff(option->get_name(false, true)),
                        roff(option->get_type_name()), roff(option->get_description()));
    if (!option->get_default_str().empty()) {
      text += fmt::format("Default: {}.\n", roff(option->get_default_str()));
    }
  }
  std::string text;
  for (const std::string& group : order) {
    text += fmt::format(".SS {}\n{}", roff(group), groups[group]);
  }
  return text;
}

std::string page(const CLI::App& app) {
  std::string text =
      fmt::format(".TH {} 1 \"\" \"quench {}\" \"Quench\"\n", title_of(app), QUENCH_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(title_of(app)), roff(app.get_description()));
  text += ".SH SYNOPSIS\n" + synopsis(app);
  const auto parts = parts_of(app);
  if (!parts.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* part : parts) {
    text +=
        fmt::format(".TP\n.BR {} (1)\n{}\n", roff(title_of(*part)), roff(part->get_description()));
  }
  text += ".SH OPTIONS\n" + options_text(app);
  const std::string footer = app.get_footer();
  const std::size_t example = footer.find("Example:\n");
  if (example != std::string::npos) {
    text += fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", roff(footer.substr(example + 9)));
  }
  text +=
      ".SH EXIT STATUS\n0: done. 1: a limit was missed. 2: wrong usage. 3: bad input. 4: not "
      "supported. 5: internal. 130: interrupted.\n";
  return text + ".SH SEE ALSO\n.BR quench (1)\n";
}

void write_pages(const CLI::App& app, const std::string& folder, Outputs& outputs) {
  const std::string path = (std::filesystem::path(folder) / (title_of(app) + ".1")).string();
  outputs.writes(path, "a manual page");
  write_text(path, page(app), outputs);
  for (const CLI::App* part : parts_of(app)) write_pages(*part, folder, outputs);
}

struct ManFlags {
  std::vector<std::string> command;
  std::string folder;
};

int run(const CLI::App& root, const ManFlags& flags) {
  if (!flags.folder.empty()) {
    std::filesystem::create_directories(flags.folder);
    Outputs outputs;
    write_pages(root, flags.folder, outputs);
    outputs.commit();
    return kOk;
  }
  const CLI::App* app = &root;
  for (const std::string& word : flags.command) {
    const std::string complaint = unknown_command(*app, word);
    if (!complaint.empty()) return report_error(complaint, kUsage);
    app = app->get_subcommand(word);
  }
  print(page(*app));
  return kOk;
}

}  // namespace

Command setup_man(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "man", "Print a manual page, or write them all", "quench man quantize");
  auto flags = std::make_shared<ManFlags>();
  app->add_option("command", flags->command, "A command, or a command and its part")
      ->type_name("COMMAND");
  app->add_option("--folder", flags->folder, "Write every page into this folder")->type_name("DIR");
  return {app, [&root, flags] { return run(root, *flags); }};
}

}  // namespace quench::cli
