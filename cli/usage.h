// SPDX-License-Identifier: Apache-2.0
// Wrong commands and flags, answered with the nearest right one.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace quench::cli {

/// Reports what was wrong with the command line and returns the exit code; prints help and
/// version where that was asked for.
int report_parse_error(CLI::App& root, const CLI::ParseError& error);

/// The nearest command when `word` is none of them; empty when it is one.
std::string unknown_command(const CLI::App& root, const std::string& word);

}  // namespace quench::cli
