// SPDX-License-Identifier: Apache-2.0
// How a failure becomes a sentence on stderr and an exit code.
#pragma once

#include <string>
#include <string_view>

#include "quench/error.h"

namespace quench::cli {

/// The exit codes of every verb.
enum ExitCode {
  kOk = 0,
  kBarMissed = 1,
  kUsage = 2,
  kBadInput = 3,
  kUnsupported = 4,
  kInternal = 5,
  kInterrupted = 130,
};

ExitCode exit_code(ErrorKind kind) noexcept;

/// Prints "quench: error: ..." and returns `code`.
int report_error(std::string_view sentence, ExitCode code);

/// To be called in a catch block: reports whatever was thrown.
int report_current_exception();

/// The text without control characters: names in a model file must not steer the terminal.
std::string printable(std::string_view text);

}  // namespace quench::cli
