// SPDX-License-Identifier: Apache-2.0
// Formatting for messages; <format> needs a newer compiler than Debian 12 has.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "quench/error.h"

namespace quench {

#if __has_include(<format>)
/// An object, so that the namespaces of arguments are not searched: a newer compiler's std::format,
/// which libtorch's headers may bring, is no rival.
struct Formatter {
  template <typename... Args>
  std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return fmt::format(text, std::forward<Args>(args)...);
  }
};
inline constexpr Formatter format;
#else
using fmt::format;
#endif

/// Throws Error(kind) with a formatted sentence.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace quench
