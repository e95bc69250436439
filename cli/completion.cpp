// SPDX-License-Identifier: Apache-2.0
// quench completion: scripts by which a shell completes commands, flags and their values.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "quench/option_table.h"

namespace quench::cli {
namespace {

using Names = std::vector<std::string>;

struct Flag {
  std::string name;
  std::string help;
  bool takes_value = false;
  Names words;  ///< that it takes; empty: any, a file perhaps
};

/// A command with the words that lead to it: quench analyze target.
struct Node {
  Names path;
  std::string help;
  Names commands = {};
  Names words = {};  ///< that may stand there themselves
  std::vector<Flag> flags = {};
};

/// The words between braces that the help shows.
Names words_in(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return split_names(type.substr(open + 1, close - open - 1));
}

Names words_of(const CLI::Option& flag, const std::string& name) {
  for (const Option& option : all_options()) {
    if (option.name == name && !option.list.empty()) return listed_names(std::string(option.list));
  }
  return words_in(flag.get_type_name());
}

void collect(const CLI::App& app, Names path, std::vector<Node>& nodes) {
  path.push_back(app.get_name());
  Node node{.path = path, .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    const bool value = option->get_items_expected_max() > 0;
    if (option->get_positional()) node.words = words_in(option->get_type_name());
    for (const std::string& name : option->get_lnames()) {
      node.flags.push_back(
          {"--" + name, option->get_description(), value, words_of(*option, name)});
    }
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) node.commands.push_back(command->get_name());
  nodes.push_back(node);
  for (const CLI::App* command : commands) collect(*command, path, nodes);
}

std::string joined(const Names& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Between single quotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string bash(const std::vector<Node>& nodes) {
  std::string commands;
  std::string values;
  std::string flags;
  for (const Node& node : nodes) {
    const std::string path = joined(node.path);
    if (node.path.size() > 1)
      commands += fmt::format("      {}) path=$path\\ $word ;;\n", quoted(path));
    Names words = node.commands;
    words.insert(words.end(), node.words.begin(), node.words.end());
    for (const Flag& flag : node.flags) {
      words.push_back(flag.name);
      if (!flag.takes_value) continue;
      values += fmt::format("    {}) words={}; files=1 ;;\n", quoted(path + " " + flag.name),
                            quoted(joined(flag.words)));
    }
    flags += fmt::format("    {}) all={} ;;\n", quoted(path), quoted(joined(words)));
  }
  return fmt::format(R"(# bash completion for quench; in ~/.bashrc: source <(quench completion bash)
_quench() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local path=quench word words= all= files=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
{}    esac
  done
  case "$path $previous" in
{}  esac
  case "$path" in
{}  esac
  # Where nothing fits, bash completes names of files.
  [[ -z $files ]] && words=$all
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _quench quench
)",
                     commands, values, flags);
}

Names all_quoted(Names words) {
  std::ranges::transform(words, words.begin(), quoted);
  return words;
}

/// 'name:what it is', as zsh's _describe takes them.
std::string described(const std::string& name, const std::string& help) {
  std::string text;
  for (const char c : name) text += c == ':' ? std::string("\\:") : std::string(1, c);
  return quoted(text + ":" + help);
}

std::string zsh(const std::vector<Node>& nodes) {
  std::string commands;
  std::string values;
  std::string flags;
  for (const Node& node : nodes) {
    const std::string path = joined(node.path);
    if (node.path.size() > 1)
      commands += fmt::format("      {}) at+=\" $word\" ;;\n", quoted(path));
    Names below;
    for (const Node& each : nodes) {
      const Names parent(each.path.begin(), each.path.end() - 1);
      if (parent == node.path) below.push_back(described(each.path.back(), each.help));
    }
    Names own;
    for (const Flag& flag : node.flags) {
      own.push_back(described(flag.name, flag.help));
      if (!flag.takes_value) continue;
      const std::string words = flag.words.empty()
                                    ? "_files"
                                    : fmt::format("compadd -- {}", joined(all_quoted(flag.words)));
      values += fmt::format("    {}) {}; return ;;\n", quoted(path + " " + flag.name), words);
    }
    flags += fmt::format("    {})\n      commands=({})\n      names=({})\n      flags=({}) ;;\n",
                         quoted(path), joined(below), joined(all_quoted(node.words)), joined(own));
  }
  return fmt::format(R"(#compdef quench
# zsh completion for quench; in ~/.zshrc, behind compinit: source <(quench completion zsh)
_quench() {{
  local at=quench word
  local -a commands names flags
  for word in ${{words[2,CURRENT-1]}}; do
    case "$at $word" in
{}    esac
  done
  case "$at ${{words[CURRENT-1]}}" in
{}  esac
  case "$at" in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o flag flags
    return
  fi
  (( $#commands )) && _describe command commands && return
  (( $#names )) && compadd -- $names && return
  _files
}}
if [[ ${{zsh_eval_context[-1]}} == loadautofunc ]]; then _quench "$@"; else compdef _quench quench; fi
)",
                     commands, values, flags);
}

/// Whether the words before lead to a command and to none below it.
std::string fish_condition(const Node& node) {
  Names tests;
  for (std::size_t i = 1; i < node.path.size(); ++i) {
    tests.push_back("__fish_seen_subcommand_from " + node.path[i]);
  }
  if (!node.commands.empty()) {
    tests.push_back("not __fish_seen_subcommand_from " + joined(node.commands));
  }
  return quoted(fmt::format("{}", fmt::join(tests, "; and ")));
}

std::string fish(const std::vector<Node>& nodes) {
  std::string text = "# fish completion for quench; quench completion fish | source\n";
  for (const Node& node : nodes) {
    const std::string when = fish_condition(node);
    for (const Node& below : nodes) {
      const Names parent(below.path.begin(), below.path.end() - 1);
      if (parent != node.path) continue;
      text += fmt::format("complete -c quench -n {} -f -a {} -d {}\n", when, below.path.back(),
                          quoted(below.help));
    }
    if (!node.words.empty()) {
      text += fmt::format("complete -c quench -n {} -f -a {}\n", when, quoted(joined(node.words)));
    }
    for (const Flag& flag : node.flags) {
      text += fmt::format("complete -c quench -n {} -l {} -d {}", when, flag.name.substr(2),
                          quoted(flag.help));
      if (flag.takes_value)
        text += flag.words.empty() ? " -r" : " -x -a " + quoted(joined(flag.words));
      text += "\n";
    }
  }
  return text;
}

}  // namespace

Command setup_completion(CLI::App& root) {
  CLI::App* app = add_verb(root, "completion", "Print a script that completes commands in a shell",
                           "quench completion bash");
  auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  return {app, [&root, shell] {
            std::vector<Node> nodes;
            collect(root, {}, nodes);
            print(*shell == "fish" ? fish(nodes) : *shell == "zsh" ? zsh(nodes) : bash(nodes));
            return static_cast<int>(kOk);
          }};
}

}  // namespace quench::cli
