// SPDX-License-Identifier: Apache-2.0
// Reads INI files with the grammar of converter_lite, whose files users bring along.
#include "base/ini.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/format.h"
#include "base/nearest.h"

namespace quench {
namespace {

// No real configuration comes near these.
constexpr std::uint64_t kMaxBytes = 1U << 20U;
constexpr int kMaxLines = 9999;
/// A file that is no configuration at all is wrong in every line.
constexpr std::size_t kMostTold = 20;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool parse_number(std::string_view text, double& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

const IniEntry* IniSection::find(std::string_view key) const noexcept {
  const auto found = std::find_if(entries.rbegin(), entries.rend(),
                                  [key](const IniEntry& entry) { return entry.key == key; });
  return found == entries.rend() ? nullptr : &*found;
}

IniFile IniFile::read(const std::string& path) {
  const std::uint64_t size = file_size(path);
  if (size > kMaxBytes) {
    fail(ErrorKind::BadConfig, "{}: {} bytes are too many for a configuration file (limit {})",
         path, size, kMaxBytes);
  }
  return parse(read_text(path), path);
}

IniFile IniFile::parse(std::string_view text, std::string path) {
  IniFile file;
  file.path_ = std::move(path);
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (++number > kMaxLines) {
      file.complain(number, "more lines than a configuration may have");
      break;
    }
    file.add_line(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return file;
}

void IniFile::add_line(std::string_view raw, int number) {
  std::string unquoted(raw);
  std::erase(unquoted, '"');
  const std::string_view line = trim(unquoted);
  if (line.empty() || line.front() == '#') return;
  if (line.front() != '[' || line.back() != ']' || line.size() < 2) {
    return add_entry(line, number);
  }
  const std::string_view name = trim(line.substr(1, line.size() - 2));
  if (name.empty()) return complain(number, "a section needs a name between '[' and ']'");
  current_ = static_cast<std::size_t>(&section_called(name, number) - sections_.data());
}

void IniFile::add_entry(std::string_view line, int number) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || line.find('=', equals + 1) != std::string_view::npos) {
    return complain(number, format("expected 'key=value' or '[section]', got '{}'", line));
  }
  const std::string_view key = trim(line.substr(0, equals));
  const std::string_view value = trim(line.substr(equals + 1));
  if (key.empty()) return complain(number, "the name before '=' is missing");
  if (value.empty()) {
    return complain(number,
                    format("'{}' has no value; leave the line out to use the default", key));
  }
  if (sections_.empty()) section_called("DEFAULT", number);
  sections_[current_].entries.push_back({std::string(key), std::string(value), number});
}

IniSection& IniFile::section_called(std::string_view name, int line) {
  for (IniSection& section : sections_) {
    if (section.name == name) return section;
  }
  sections_.push_back({std::string(name), line, {}});
  return sections_.back();
}

const IniSection* IniFile::find(std::string_view section) const noexcept {
  for (const IniSection& candidate : sections_) {
    if (candidate.name == section) return &candidate;
  }
  return nullptr;
}

void IniFile::complain(int line, std::string sentence, ErrorKind kind) {
  mistakes_.push_back({line, std::move(sentence), kind});
}

void IniFile::check() const {
  if (mistakes_.empty()) return;
  std::vector<Mistake> sorted = mistakes_;
  std::ranges::stable_sort(sorted, {}, &Mistake::line);
  std::string text;
  // What is wrong has to be put right before it counts what is not done.
  ErrorKind kind = ErrorKind::Unsupported;
  std::size_t told = 0;
  for (const Mistake& mistake : sorted) {
    if (mistake.kind != ErrorKind::Unsupported) kind = mistake.kind;
    if (++told > kMostTold) continue;
    text +=
        format("{}{}:{}: {}", text.empty() ? "" : "\n  ", path_, mistake.line, mistake.sentence);
  }
  if (told > kMostTold) text += format("\n  and {} more", told - kMostTold);
  throw Error(kind, text);
}

void IniFile::expect_keys(const IniSection& section, std::span<const std::string> known) {
  for (const IniEntry& entry : section.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    complain(entry.line, format("[{}] has no key '{}'{}", section.name, entry.key,
                                did_you_mean(entry.key, known)));
  }
}

std::optional<std::int64_t> IniFile::to_int(const IniEntry& entry, std::int64_t low,
                                            std::int64_t high) {
  std::int64_t number = 0;
  const char* end = entry.value.data() + entry.value.size();
  const auto parsed = std::from_chars(entry.value.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end && number >= low && number <= high) {
    return number;
  }
  complain(entry.line, format("{} must be a whole number from {} to {}, got '{}'", entry.key, low,
                              high, entry.value));
  return std::nullopt;
}

std::optional<bool> IniFile::to_bool(const IniEntry& entry) {
  std::string lower = entry.value;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "true") return true;
  if (lower == "false") return false;
  complain(entry.line, format("{} must be true or false, got '{}'", entry.key, entry.value));
  return std::nullopt;
}

std::optional<double> IniFile::to_number(const IniEntry& entry) {
  double number = 0;
  if (parse_number(entry.value, number)) return number;
  complain(entry.line, format("{} must be a number, got '{}'", entry.key, entry.value));
  return std::nullopt;
}

std::optional<std::vector<double>> IniFile::to_numbers(const IniEntry& entry) {
  const std::string_view text = entry.value;
  const bool bracketed = text.size() >= 3 && text.front() == '[' && text.back() == ']';
  std::string_view rest = bracketed ? text.substr(1, text.size() - 2) : std::string_view{};
  std::vector<double> numbers;
  bool good = bracketed;
  while (good) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    double number = 0;
    good = parse_number(trim(rest.substr(0, comma)), number);
    numbers.push_back(number);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  if (good) return numbers;
  complain(entry.line,
           format("{} must be numbers such as [1.0, 2.0], got '{}'", entry.key, entry.value));
  return std::nullopt;
}

std::optional<std::size_t> IniFile::to_choice(const IniEntry& entry,
                                              std::span<const std::string> choices) {
  const auto found = std::find(choices.begin(), choices.end(), entry.value);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  complain(entry.line,
           format("{} must be one of {}, got '{}'{}", entry.key, fmt::join(choices, ", "),
                  entry.value, did_you_mean(entry.value, choices)));
  return std::nullopt;
}

std::string ini_escaped(std::string_view text) {
  std::string value;
  for (const char c : text) {
    const bool plain = c != '"' && c != '=' && c != '%' && static_cast<unsigned char>(c) >= ' ';
    value += plain ? std::string(1, c) : format("%{:02X}", static_cast<unsigned char>(c));
  }
  return value;
}

std::string ini_unescaped(std::string_view value) {
  std::string text;
  for (std::size_t i = 0; i < value.size(); ++i) {
    unsigned code = 0;
    const char* digits = value.data() + i + 1;
    const bool escaped = value[i] == '%' && i + 2 < value.size() &&
                         std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    text += escaped ? static_cast<char>(code) : value[i];
    if (escaped) i += 2;
  }
  return text;
}

}  // namespace quench
