// SPDX-License-Identifier: Apache-2.0
// INI files: sections of key=value lines that remember where they stood.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// The sections of a file in the order in which their names first appear. Every failure is an
/// Error(BadConfig) that opens with "path:line: ".
class IniFile {
 public:
  static IniFile read(const std::string& path);
  static IniFile parse(std::string_view text, std::string path);

  const std::string& path() const noexcept { return path_; }
  const std::vector<IniSection>& sections() const noexcept { return sections_; }
  const IniSection* find(std::string_view section) const noexcept;

  /// Throws unless every key of the section is one of `known`, naming the nearest.
  void expect_keys(const IniSection& section, std::span<const std::string> known) const;
  [[noreturn]] void fail_at(int line, std::string_view sentence) const;

  /// A base-10 number within [low, high].
  std::int64_t to_int(const IniEntry& entry, std::int64_t low, std::int64_t high) const;
  /// `true` or `false` in any case.
  bool to_bool(const IniEntry& entry) const;
  /// A finite number.
  double to_number(const IniEntry& entry) const;
  /// `[1.0, 2.0]`: finite numbers between square brackets.
  std::vector<double> to_numbers(const IniEntry& entry) const;
  /// The position of the value among `choices`, which are case-sensitive.
  std::size_t to_choice(const IniEntry& entry, std::span<const std::string> choices) const;

 private:
  void add_line(std::string_view raw, int number);
  IniSection& section_called(std::string_view name, int line);

  std::string path_;
  std::vector<IniSection> sections_;
  std::size_t current_ = 0;
};

}  // namespace quench
