// SPDX-License-Identifier: Apache-2.0
// Which flags the short help shows.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

namespace quench::cli {

/// Whether the help shows every flag, and not only those that most people need. Set before the
/// commands are set up.
bool& shows_all_flags();
/// A flag that only --help-all shows.
CLI::Option* for_experts(CLI::Option* option);

/// The help, without flags for experts.
class Help : public CLI::Formatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
};

}  // namespace quench::cli
