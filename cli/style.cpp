// SPDX-License-Identifier: Apache-2.0
// Colour, where a terminal shows it and nobody said no, and hints at the next command.
#include "cli/style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "cli/errors.h"

namespace quench::cli {
namespace {

bool shows_colour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  if (refused != nullptr && *refused != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return isatty(descriptor) == 1;
}

const char* code_of(Style style) {
  switch (style) {
    case Style::Error:
      return "1;31";
    case Style::Warning:
      return "33";
    case Style::Hint:
      return "36";
  }
  return "0";
}

}  // namespace

std::string styled(int descriptor, Style style, std::string_view text) {
  if (!shows_colour(descriptor)) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code_of(style), text);
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:,=@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void suggest(const CommonFlags& flags, std::string_view what, std::string_view command) {
  if (flags.quiet || flags.json || isatty(STDOUT_FILENO) != 1) return;
  const std::string line = printable(fmt::format("{}: {}", what, command));
  std::printf("\n%s\n", styled(STDOUT_FILENO, Style::Hint, line).c_str());
}

}  // namespace quench::cli
