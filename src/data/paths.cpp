// SPDX-License-Identifier: Apache-2.0
// Splits the text of --data.
#include "data/paths.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/format.h"
#include "base/nearest.h"

namespace quench::data {
namespace {

// Pieces between separators that stand outside single quotes.
std::vector<std::string_view> split_items(std::string_view text) {
  std::vector<std::string_view> items;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (text[i] != ',' || quoted) continue;
    items.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (quoted) fail(ErrorKind::Usage, "data path {}: a single quote is not closed", text);
  items.push_back(text.substr(begin));
  return items;
}

std::size_t last_colon(std::string_view item) {
  bool quoted = false;
  for (std::size_t i = item.size(); i-- > 0;) {
    if (item[i] == '\'') quoted = !quoted;
    if (item[i] == ':' && !quoted) return i;
  }
  return std::string_view::npos;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

bool is_one_path(const std::string& text) {
  std::error_code code;
  if (text.find(':') == std::string::npos || std::filesystem::exists(text, code)) return true;
  const std::size_t member = text.rfind(".npz:");
  if (member != std::string::npos && std::filesystem::exists(text.substr(0, member + 4), code)) {
    return true;
  }
  return split_items(text).size() == 1 && last_colon(text) == std::string::npos;
}

std::vector<std::string> names_of(const std::vector<InputSpec>& specs) {
  std::vector<std::string> names;
  for (const InputSpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::vector<InputPath> same_path(const std::string& path, const std::vector<InputSpec>& specs) {
  const bool archive = path.ends_with(".npz");
  if (specs.size() > 1 && !archive) {
    const std::vector<std::string> names = names_of(specs);
    fail(ErrorKind::Usage,
         "the model has {} inputs ({}), so each needs its own path: {}:PATH,{}:PATH", specs.size(),
         fmt::join(names, ", "), names[0], names[1]);
  }
  std::vector<InputPath> result;
  for (const InputSpec& spec : specs) {
    result.push_back({&spec, archive && specs.size() > 1 ? path + ":" + spec.name : path});
  }
  return result;
}

}  // namespace

std::vector<std::string> files_of(const std::string& text) {
  if (text.empty()) return {};
  std::vector<std::string> paths;
  if (is_one_path(text)) {
    paths.push_back(unquoted(text));
  } else {
    for (const std::string_view item : split_items(text)) {
      const std::size_t colon = last_colon(item);
      paths.push_back(unquoted(colon == std::string_view::npos ? item : item.substr(colon + 1)));
    }
  }
  for (std::string& path : paths) {
    const std::size_t member = path.rfind(".npz:");
    if (member != std::string::npos) path.resize(member + 4);
  }
  return paths;
}

std::vector<InputPath> split_paths(const std::string& text, const std::vector<InputSpec>& specs) {
  if (text.empty()) fail(ErrorKind::Usage, "the data path is empty");
  if (specs.empty()) fail(ErrorKind::Usage, "the model has no inputs to feed with {}", text);
  if (is_one_path(text)) return same_path(unquoted(text), specs);
  const std::vector<std::string> names = names_of(specs);
  std::map<std::string, std::string> paths;
  for (const std::string_view item : split_items(text)) {
    const std::size_t colon = last_colon(item);
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == item.size()) {
      fail(ErrorKind::Usage, "data path '{}': expected input:path", item);
    }
    const std::string name = unquoted(item.substr(0, colon));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail(ErrorKind::Usage, "data path '{}': the model has no input '{}' (it has {}){}", item,
           name, fmt::join(names, ", "), did_you_mean(name, names));
    }
    if (!paths.emplace(name, unquoted(item.substr(colon + 1))).second) {
      fail(ErrorKind::Usage, "data path '{}': input '{}' has a path already", item, name);
    }
  }
  std::vector<InputPath> result;
  for (const InputSpec& spec : specs) {
    const auto found = paths.find(spec.name);
    if (found == paths.end()) {
      fail(ErrorKind::Usage, "no data path for input '{}'; add {}:PATH", spec.name, spec.name);
    }
    result.push_back({&spec, found->second});
  }
  return result;
}

}  // namespace quench::data
