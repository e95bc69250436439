// SPDX-License-Identifier: Apache-2.0
// The flags that the table of options makes.
#pragma once

#include <CLI/App.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "quench/option_table.h"

namespace quench::cli {

/// What the option is for, and where the names that it takes are listed.
std::string help_text(const Option& option);

/// Options of a command line. It must stay where it is until the line was parsed.
class OptionFlags {
 public:
  /// Adds a flag for every option that the command takes; the help shows the values of `defaults`.
  void add(CLI::App& app, unsigned job, const QuantizeOptions& defaults = {});
  /// Lays what was given over the options.
  void apply(QuantizeOptions& options) const;
  /// The names of what was given.
  std::vector<std::string_view> given() const;

 private:
  struct Flag {
    const Option* option = nullptr;
    CLI::Option* flag = nullptr;
    std::string word;
    std::vector<std::string> words;
    bool on = false;
  };
  void add_flag(CLI::App& app, const Option& option, const QuantizeOptions& defaults);

  std::deque<Flag> flags_;  ///< in which places do not move
};

/// --data and everything that says how samples are prepared.
struct DataFlags {
  std::string config;
  OptionFlags options;
};
void add_data_flags(CLI::App& app, DataFlags& flags);
DataOptions data_options(const DataFlags& flags);

}  // namespace quench::cli
