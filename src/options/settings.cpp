// SPDX-License-Identifier: Apache-2.0
// The settings of a job as JSON, and the place they have in a model's metadata.
#include "options/settings.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "options/row.h"

namespace quench {
namespace options {
namespace {

/// Reports of large models take a few MB.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// A report or settings begin with a brace; no model does.
bool is_json(std::span<const std::byte> bytes) {
  const auto blank = [](std::byte byte) {
    const char c = static_cast<char>(byte);
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
  };
  const auto first = std::ranges::find_if_not(bytes, blank);
  return first != bytes.end() && static_cast<char>(*first) == '{';
}

/// Nesting beyond any settings, which would only serve to exhaust the stack.
bool too_deep(std::string_view text) {
  constexpr int kMost = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '[')) {
      if (++depth > kMost) return true;
    } else if (!quoted && (text[i] == '}' || text[i] == ']')) {
      --depth;
    }
  }
  return false;
}

/// Where a path of the table leads in nested objects.
Json& at_path(Json& json, std::string_view path) {
  Json* at = &json;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    at = &(*at)[std::string(path.substr(0, dot))];
    path.remove_prefix(dot + 1);
  }
  return (*at)[std::string(path)];
}

/// Sets an option by its name, from JSON as a command line would have it.
void decode_named(std::size_t row, const Json& json, const std::string& place,
                  QuantizeOptions& options) {
  const auto text = [](const Json& each) {
    return each.is_string() ? each.get<std::string>() : each.dump();
  };
  if (!all_options()[row].setting.empty() && !json.is_string()) {
    return all_rows()[row].decode(options, json, place);
  }
  Words words;
  if (json.is_array()) {
    for (const Json& each : json) words.push_back(text(each));
  } else {
    words.push_back(text(json));
  }
  try {
    all_rows()[row].set(options, words);
  } catch (const Error& error) {
    fail(ErrorKind::BadConfig, "{}: {}", place, error.what());
  }
}

void decode_object(const Json& json, const std::string& prefix, const std::string& place,
                   QuantizeOptions& options);

/// A key is a place of the table or, at the top, a name.
void decode_key(const std::string& key, const Json& json, const std::string& prefix,
                const std::string& place, QuantizeOptions& options) {
  const std::string path = prefix + key;
  const std::string where = place + "." + key;
  const auto named = prefix.empty() ? find_row(key) : std::nullopt;
  Words names;
  for (std::size_t i = 0; i < all_rows().size(); ++i) {
    const Option& option = all_options()[i];
    // "bias_correction" is true or false as a place, and a word as a name.
    const bool is_name = named && *named != i && json.is_string();
    if (option.setting == path && !is_name) return all_rows()[i].decode(options, json, where);
    if (option.setting.starts_with(path + ".") && !(named && json.is_string())) {
      return decode_object(json, path + ".", where, options);
    }
    if (!option.setting.starts_with(prefix)) continue;
    const std::string_view rest = option.setting.substr(prefix.size());
    names.emplace_back(rest.substr(0, rest.find('.')));
  }
  if (!named) Decoder::refuse_key(place, key, names);
  decode_named(*named, json, where, options);
}

void decode_object(const Json& json, const std::string& prefix, const std::string& place,
                   QuantizeOptions& options) {
  if (!json.is_object()) Decoder::refuse(place, json, "an object");
  for (const auto& [key, value] : json.items()) decode_key(key, value, prefix, place, options);
}

}  // namespace

QuantizeOptions parse_settings(std::string_view text, const std::string& place) {
  if (text.size() > kMostBytes || too_deep(text)) {
    fail(ErrorKind::BadConfig, "{} is too large or too deep for settings", place);
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail(ErrorKind::BadConfig, "{} is not JSON", place);
  if (json.is_object() && json.contains("settings")) json = Json(json["settings"]);
  QuantizeOptions options;
  decode_object(json, "", place, options);
  return options;
}

}  // namespace options

std::string settings_json(const QuantizeOptions& options) {
  using namespace quench::options;
  QuantizeOptions shown = options;  // rows give access that can change what they show
  Json json = Json::object();
  for (std::size_t i = 0; i < all_rows().size(); ++i) {
    const std::string_view setting = all_options()[i].setting;
    if (!setting.empty()) at_path(json, setting) = all_rows()[i].encode(shown);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

QuantizeOptions read_settings(const std::string& path) {
  {
    const auto file = MappedFile::open(path);
    if (options::is_json(file->bytes())) {
      const auto bytes = file->bytes();
      return options::parse_settings({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                     path);
    }
  }
  const Model model = load(path);
  for (const auto& [key, value] : model.metadata) {
    if (key == kSettingsKey) return options::parse_settings(value, format("{}: {}", path, key));
  }
  fail(ErrorKind::BadConfig,
       "{} holds no settings: it takes a report of `quench quantize --json`, or a model that "
       "`quench quantize` wrote",
       path);
}

void note_origin(Model& model, const QuantizeOptions& options, std::string_view source) {
  std::erase_if(model.metadata,
                [](const auto& entry) { return entry.first.starts_with("quench."); });
  if (!options.store_settings) return;
  const auto note = [&](std::string_view key, std::string_view value) {
    model.metadata.emplace_back(key, value);
  };
  note(kVersionKey, QUENCH_VERSION);
  note(kSourceKey, source);
  note(kSettingsKey, settings_json(options));
}

}  // namespace quench
