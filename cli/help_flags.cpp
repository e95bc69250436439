// SPDX-License-Identifier: Apache-2.0
// Which flags the short help shows.
#include "cli/help_flags.h"

#include <set>

namespace quench::cli {
namespace {

/// The parser's own way to hide a flag also takes its name out of messages.
std::set<const CLI::Option*>& hidden_flags() {
  static std::set<const CLI::Option*> flags;
  return flags;
}

}  // namespace

bool& shows_all_flags() {
  static bool all = false;
  return all;
}

CLI::Option* for_experts(CLI::Option* option) {
  if (!shows_all_flags()) hidden_flags().insert(option);
  return option;
}

std::string Help::make_group(std::string group, bool is_positional,
                             std::vector<const CLI::Option*> options) const {
  std::erase_if(options, [](const CLI::Option* each) { return hidden_flags().contains(each); });
  if (options.empty()) return "";
  return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
}

}  // namespace quench::cli
