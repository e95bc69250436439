// SPDX-License-Identifier: Apache-2.0
// Formatting for messages; <format> needs a newer compiler than Debian 12 has.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "quench/error.h"

namespace quench {

using fmt::format;

/// Throws Error(kind) with a formatted sentence.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace quench
