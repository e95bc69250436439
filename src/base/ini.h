// SPDX-License-Identifier: Apache-2.0
// INI files: sections of key=value lines that remember where they stood.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/error.h"

namespace quench {

/// One `key=value` line.
struct IniEntry {
  std::string key;
  std::string value;
  int line = 0;
};

/// A section; of equal keys the last one counts.
struct IniSection {
  std::string name;
  int line = 0;
  std::vector<IniEntry> entries;

  const IniEntry* find(std::string_view key) const noexcept;
};

/// The sections of a file in the order in which their names first appear. Mistakes are collected,
/// so that a reader learns of all of them at once: what cannot be read is passed over, and `check`
/// throws one Error, a line for each, that opens with "path:line: ".
class IniFile {
 public:
  static IniFile read(const std::string& path);
  static IniFile parse(std::string_view text, std::string path);

  const std::string& path() const noexcept { return path_; }
  const std::vector<IniSection>& sections() const noexcept { return sections_; }
  const IniSection* find(std::string_view section) const noexcept;

  /// Notes a mistake; `kind` is BadConfig, or Unsupported for what is right but not done here.
  void complain(int line, std::string sentence, ErrorKind kind = ErrorKind::BadConfig);
  /// Throws what was noted, in the order of lines.
  void check() const;

  /// Every key of the section must be one of `known`; the complaint names the nearest.
  void expect_keys(const IniSection& section, std::span<const std::string> known);
  /// The functions below give nothing where the value is not what they want.
  /// A base-10 number within [low, high].
  std::optional<std::int64_t> to_int(const IniEntry& entry, std::int64_t low, std::int64_t high);
  /// `true` or `false` in any case.
  std::optional<bool> to_bool(const IniEntry& entry);
  /// A finite number.
  std::optional<double> to_number(const IniEntry& entry);
  /// `[1.0, 2.0]`: finite numbers between square brackets.
  std::optional<std::vector<double>> to_numbers(const IniEntry& entry);
  /// The position of the value among `choices`, which are case-sensitive.
  std::optional<std::size_t> to_choice(const IniEntry& entry, std::span<const std::string> choices);

 private:
  struct Mistake {
    int line = 0;
    std::string sentence;
    ErrorKind kind = ErrorKind::BadConfig;
  };
  void add_line(std::string_view raw, int number);
  void add_entry(std::string_view line, int number);
  IniSection& section_called(std::string_view name, int line);

  std::string path_;
  std::vector<IniSection> sections_;
  std::vector<Mistake> mistakes_;
  std::size_t current_ = 0;
};

/// Text in a form that survives as a value: quotes, equals signs and line ends as %XX.
std::string ini_escaped(std::string_view text);
std::string ini_unescaped(std::string_view value);

}  // namespace quench
