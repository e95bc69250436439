// SPDX-License-Identifier: Apache-2.0
// The types of options as text: what they are parsed from and printed as.
#include "options/values.h"

#include <charconv>
#include <cmath>

namespace quench {
namespace options {
namespace {

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && stop == text.data() + text.size();
}

bool within(const Option& option, double value) {
  if (option.open && (value <= option.least || value >= option.most)) return false;
  return value >= option.least && value <= option.most;
}

/// The parts between commas, empty ones too.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

std::string range_of(const Option& option, std::string_view kind) {
  const bool low = std::isfinite(option.least);
  const bool high = std::isfinite(option.most);
  if (!low && !high) return std::string(kind);
  if (!high) return format("{} from {} on", kind, option.least);
  return format("{} {} {} {} {}", kind, option.open ? "between" : "from", option.least,
                option.open ? "and" : "to", option.most);
}

}  // namespace

void refuse(const Option& option, std::string_view word) {
  fail(ErrorKind::Usage, "--{} takes {}; got '{}'", option.name, option_takes(option), word);
}

const std::string& only_word(const Option& option, const Words& words) {
  if (words.empty()) refuse(option, "");
  return words.back();
}

std::size_t choice_of(const Option& option, std::string_view word) {
  for (std::size_t i = 0; i < option.choices.size(); ++i) {
    if (same_letters(option.choices[i], word)) return i;
  }
  refuse(option, word);
}

std::int64_t whole_of(const Option& option, std::string_view word) {
  std::int64_t value = 0;
  if (!parse_whole(word, value) || !within(option, static_cast<double>(value))) {
    refuse(option, word);
  }
  return value;
}

double number_of(const Option& option, std::string_view word) {
  double value = 0;
  if (!parse_whole(word, value) || !std::isfinite(value) || !within(option, value)) {
    refuse(option, word);
  }
  return value;
}

bool Value<bool>::parse(const Option& option, const Words& words) {
  if (words.empty() || words.back() == "true") return true;
  if (words.back() != "false") refuse(option, words.back());
  return false;
}

std::string Value<std::string>::parse(const Option& option, const Words& words) {
  const std::string& word = only_word(option, words);
  return option.choices.empty() ? word : option.choices[choice_of(option, word)];
}

Words Value<Words>::parse(const Option& option, const Words& words) {
  if (option.value != "LIST") return words;  // files: a comma may be part of a name
  Words names;
  for (const std::string& word : words) {
    for (std::string& name : split_names(word)) names.push_back(std::move(name));
  }
  return names;
}

std::string Value<Words>::print(const Words& value) {
  std::string text;
  for (const std::string& name : value) {
    if (!text.empty()) text += ',';
    for (const char c : name) text += c == ',' ? std::string("\\,") : std::string(1, c);
  }
  return text;
}

std::vector<double> Value<std::vector<double>>::parse(const Option& option, const Words& words) {
  std::vector<double> values;
  for (const std::string_view part : parts_of(only_word(option, words))) {
    double value = 0;
    if (!parse_whole(part, value) || !std::isfinite(value)) refuse(option, words.back());
    values.push_back(value);
  }
  return values;
}

std::string Value<std::vector<double>>::print(const std::vector<double>& value) {
  return format("{}", fmt::join(value, ","));
}

ImageSize Value<ImageSize>::parse(const Option& option, const Words& words) {
  const auto parts = parts_of(only_word(option, words));
  ImageSize size;
  if (parts.size() != 2 || !parse_whole(parts[0], size.width) ||
      !parse_whole(parts[1], size.height) || size.width < 1 || size.height < 1) {
    refuse(option, words.back());
  }
  return size;
}

std::string Value<ImageSize>::print(const ImageSize& value) {
  return format("{},{}", value.width, value.height);
}

std::map<std::string, Shape> Value<std::map<std::string, Shape>>::parse(const Option& option,
                                                                        const Words& words) {
  std::map<std::string, Shape> shapes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) refuse(option, word);
    Shape shape;
    for (const std::string_view part : parts_of(std::string_view(word).substr(equals + 1))) {
      std::int64_t dim = -1;
      if (!parse_whole(part, dim) || dim < 0) refuse(option, word);
      shape.push_back(dim);
    }
    shapes[word.substr(0, equals)] = shape;
  }
  return shapes;
}

std::string Value<std::map<std::string, Shape>>::print(const std::map<std::string, Shape>& value) {
  std::string text;
  for (const auto& [name, shape] : value) {
    text += format("{}{}={}", text.empty() ? "" : " ", name, fmt::join(shape, ","));
  }
  return text;
}

}  // namespace options

std::string option_takes(const Option& option) {
  if (!option.choices.empty()) return format("one of {}", fmt::join(option.choices, ", "));
  switch (option.kind) {
    case OptionKind::Switch:
      return "true or false";
    case OptionKind::Whole:
      return options::range_of(option, "a whole number");
    case OptionKind::Number:
      return options::range_of(option, "a number");
    case OptionKind::Numbers:
      return "numbers separated by commas, as in 123.7,116.3,103.5";
    case OptionKind::Size:
      return "a width and a height, as in 224,224";
    case OptionKind::Shapes:
      return "NAME=VALUE, dimensions separated by commas, as in x=1,3,224,224";
    case OptionKind::List:
      return "names";
    case OptionKind::Word:
    case OptionKind::Text:
    case OptionKind::Other:
      break;
  }
  return "text";
}

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      names.back() += text[++i];
    } else if (text[i] == ',') {
      names.emplace_back();
    } else {
      names.back() += text[i];
    }
  }
  std::erase(names, "");
  return names;
}

}  // namespace quench
