// SPDX-License-Identifier: Apache-2.0
// Small values in flags: NAME=VALUE pairs, shapes, lists.
#include "cli/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "quench/error.h"

namespace quench::cli {
namespace {

[[noreturn]] void refuse(const std::string& flag, const std::string& text, const char* wanted) {
  throw Error(ErrorKind::Usage, fmt::format("{} takes {}; got '{}'", flag, wanted, text));
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

template <typename T>
bool parse_whole(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

Shape parse_shape(const std::string& flag, const std::string& text) {
  Shape shape;
  for (const std::string& part : split(text)) {
    std::int64_t dim = -1;
    if (!parse_whole(part, dim) || dim < 0) {
      refuse(flag, text, "dimensions separated by commas, as in 1,3,224,224");
    }
    shape.push_back(dim);
  }
  return shape;
}

}  // namespace

std::pair<std::string, std::string> parse_pair(const std::string& flag, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    refuse(flag, text, "NAME=VALUE");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

double parse_number(const std::string& flag, const std::string& text) {
  double value = 0;
  if (!parse_whole(text, value) || !std::isfinite(value)) refuse(flag, text, "a number");
  return value;
}

std::map<std::string, Shape> parse_shapes(const std::string& flag,
                                          const std::vector<std::string>& items) {
  std::map<std::string, Shape> shapes;
  for (const std::string& item : items) {
    const auto [name, dims] = parse_pair(flag, item);
    shapes[name] = parse_shape(flag, dims);
  }
  return shapes;
}

std::vector<std::string> split_list(const std::vector<std::string>& items) {
  std::vector<std::string> result;
  for (const std::string& item : items) {
    for (std::string& part : split(item)) {
      if (!part.empty()) result.push_back(std::move(part));
    }
  }
  return result;
}

}  // namespace quench::cli
