// SPDX-License-Identifier: Apache-2.0
// Colour, where a terminal shows it and nobody said no, and hints at the next command.
#pragma once

#include <string>
#include <string_view>

#include "cli/common.h"

namespace quench::cli {

enum class Style { Error, Warning, Hint };

/// The text in a colour where `descriptor` is a terminal; as it is where that is a file or a pipe,
/// and where NO_COLOR or TERM=dumb ask for it.
std::string styled(int descriptor, Style style, std::string_view text);

/// A word as a shell takes it.
std::string shell_word(const std::string& word);

/// What to do next, on a terminal: "see it: quench ...". Scripts and pipes never get it.
void suggest(const CommonFlags& flags, std::string_view what, std::string_view command);

}  // namespace quench::cli
